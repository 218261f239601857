"""A backend that caches deterministic replies on disk, and answers equal requests from there.

It caches greedy generations, generations whose seed the user set (their own, or the run's), and
scores of choices: the request decides their reply. It does not check whether the model really
repeats itself, which APIs do not promise for greedy requests. Errors are never cached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from sgc.runtime.executor.interface.backend import Backend, Prompt, Sampling
from sgc.runtime.executor.interface.log import Json
from sgc.runtime.executor.keep.request_keys import generation_key, score_key
from sgc.runtime.executor.log.kept_replies import KeptReplies
from sgc.runtime.executor.log.records import fingerprint

if TYPE_CHECKING:
    from sgc.runtime.executor.keep.result_store import ResultStore

T = TypeVar("T")


class ResultCache(KeptReplies):
    """A backend with a store of replies; closing it closes the store."""

    def __init__(self, backend: Backend, store: ResultStore) -> None:
        super().__init__(backend)
        self._store = store
        self._scope = str(getattr(backend, "scope", "engine"))

    async def generation(self, prompt: Prompt, sampling: Sampling) -> str | None:
        if not sampling.is_deterministic:
            return None
        return await self._key(generation_key(prompt, sampling))

    async def choice(self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool) -> str:
        return await self._key(score_key(prompt, choices, unconditional))

    async def find(self, request: str, decode: Callable[[Json], T]) -> T | None:
        reply = await self._store.get(request)
        try:
            return None if reply is None else _cached(decode(reply))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None  # written by another version of sgc: the request is made again

    async def keep(self, request: str, reply: Json, start_s: float) -> None:
        await self._store.put(request, reply)

    async def close(self) -> None:
        """Closes the store; the endpoint closes the backend."""
        await asyncio.to_thread(self._store.close)

    async def _key(self, request: str) -> str:
        found = await self.inner.capabilities()
        return fingerprint(self._scope, found.model, dict(found.fingerprints), request)


def _cached(reply: Any) -> Any:
    """Marks the reply: the tokens and times of its usage were spent on an earlier request."""
    usage = reply.usage
    cost_usd = None if usage.cost_usd is None else 0.0
    marked = replace(
        usage, from_log=False, from_shared=False, from_ahead=False, from_cache=True,
        cost_usd=cost_usd,
    )  # fmt: skip
    return replace(reply, usage=marked)
