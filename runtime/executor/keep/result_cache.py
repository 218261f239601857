"""A backend that keeps deterministic replies on disk, and answers equal requests from there.

It keeps greedy generations, those whose seed the user set (their own, or the run's), and scores of
choices: the request decides their reply. Whether the model really repeats itself is not checked:
APIs do not promise it for greedy requests. Errors are never kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from sgc.runtime.executor.interface.backend import (
    Backend,
    Generated,
    Prompt,
    Sampling,
    Scored,
)
from sgc.runtime.executor.interface.log import Json
from sgc.runtime.executor.interface.wrapping import Wrapping
from sgc.runtime.executor.keep.request_keys import generation_key, score_key
from sgc.runtime.executor.log.records import (
    fingerprint,
    generated_json,
    generated_of,
    scored_json,
    scored_of,
)

if TYPE_CHECKING:
    from sgc.runtime.executor.keep.result_store import ResultStore

T = TypeVar("T")


class ResultCache(Wrapping):
    """The backend with a store before it, which is closed with this."""

    def __init__(self, backend: Backend, store: ResultStore) -> None:
        super().__init__(backend)
        self._store = store
        self._scope = str(getattr(backend, "scope", "engine"))

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: Callable[[str], None] | None = None
    ) -> Generated:
        if not sampling.is_deterministic:
            return await self.inner.generate(prompt, sampling, on_delta)
        key = await self._key(generation_key(prompt, sampling))
        found = await self._found(key, generated_of)
        if found is not None:
            if on_delta is not None and found.text:
                on_delta(found.text)
            return _cached(found)
        reply = await self.inner.generate(prompt, sampling, on_delta)
        await self._store.put(key, generated_json(reply))
        return reply

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        if not all(sampling.is_deterministic for sampling in samplings):
            return await self.inner.generate_n(prompt, samplings)
        keys = [await self._key(generation_key(prompt, each)) for each in samplings]
        replies = [await self._found(key, generated_of) for key in keys]
        missing = [n for n, reply in enumerate(replies) if reply is None]
        found = [None if reply is None else _cached(reply) for reply in replies]
        if missing:
            asked = await self.inner.generate_n(prompt, [samplings[n] for n in missing])
            for n, reply in zip(missing, asked, strict=True):
                await self._store.put(keys[n], generated_json(reply))
                found[n] = reply
        return tuple(reply for reply in found if reply is not None)

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        key = await self._key(score_key(prompt, choices, unconditional))
        found = await self._found(key, scored_of)
        if found is not None:
            return _cached(found)
        reply = await self.inner.score(prompt, choices, unconditional)
        await self._store.put(key, scored_json(reply))
        return reply

    async def close(self) -> None:
        """The backend is its endpoint's to close."""
        await asyncio.to_thread(self._store.close)

    async def _key(self, request: str) -> str:
        found = await self.inner.capabilities()
        return fingerprint(self._scope, found.model, dict(found.fingerprints), request)

    async def _found(self, key: str, decode: Callable[[Json], T]) -> T | None:
        reply = await self._store.get(key)
        try:
            return None if reply is None else decode(reply)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # of another version of sgc: it is requested again, and replaced


R = TypeVar("R", Generated, Scored)


def _cached(reply: R) -> R:
    """Marks the reply: the tokens and times of its usage were spent on an earlier request."""
    usage = reply.usage
    cost_usd = None if usage.cost_usd is None else 0.0
    marked = replace(
        usage, from_log=False, from_shared=False, from_ahead=False, from_cache=True,
        cost_usd=cost_usd,
    )  # fmt: skip
    return replace(reply, usage=marked)
