"""Several engines of one model as one backend: each request goes where its prompt is cached.

A request holds all that its reply depends on, so losing an engine loses its cache but no request:
another engine computes the prompt again, with the same seed. `routing/` chooses the engine.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from sgc.errors import EngineUnavailable, UsageError
from sgc.runtime.executor.backends.persistence import MAX_LOST, Shown
from sgc.runtime.executor.interface.backend import (
    Backend,
    Generated,
    MediaRun,
    OnDelta,
    Prompt,
    Sampling,
    Scored,
    Usage,
)
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.routing.blocks import CHARACTERS, MOST_HELD, POOL, blocks_of
from sgc.runtime.executor.routing.router import NobodyAnswers, Router

T = TypeVar("T")
LEAST_BLOCK = 32  # characters
PAUSE_S = 0.25


class Routed(Backend):
    """Engines by their names. Raises UsageError where they are not of one model.

    reconnect_s: how long engines are waited for when all are gone that were there.
    """

    def __init__(self, engines: Mapping[str, Backend], reconnect_s: float = 0.0) -> None:
        self._engines = dict(engines)
        self._reconnect_s = reconnect_s
        self._adapter = ""
        self._common: Capabilities | None = None
        self._checked: set[str] = set()  # engines whose model is known to be the common one
        self._shared = _Shared()

    async def capabilities(self) -> Capabilities:
        """The common capabilities of all engines; pools and numbers of concurrent requests are
        added up. Engines that do not answer are left out until they do. Raises EngineUnavailable if
        none answers."""
        if self._common is not None:
            return self._common
        told = await asyncio.gather(
            *(each.capabilities() for each in self._engines.values()), return_exceptions=True
        )
        found: dict[str, Capabilities] = {}
        for name, each in zip(self._engines, told, strict=True):
            if isinstance(each, Capabilities):
                found[name] = each
            elif not isinstance(each, EngineUnavailable):
                raise each
        if not found:
            raise self._nobody()
        self._common, self._checked = _common(found), set(found)
        self._shared.begin(self._engines, found)
        return self._common

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        shown = None if on_delta is None else Shown(on_delta)
        expected = min(sampling.max_tokens, self._shared.mean_out)

        async def once(engine: Backend) -> Generated:
            if shown is None:
                return await engine.generate(prompt, sampling)
            shown.begin()
            reply = await engine.generate(prompt, sampling, shown.take)
            shown.check(reply.text)
            return reply

        reply = await self._asked(prompt, expected, once, lambda reply: reply.usage)
        self._shared.learn(reply.usage.completion_tokens)
        return reply

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        expected = sum(min(each.max_tokens, self._shared.mean_out) for each in samplings)
        return await self._asked(
            prompt, expected, lambda engine: engine.generate_n(prompt, samplings), _first_usage
        )

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        expected = sum(map(len, choices)) / CHARACTERS
        return await self._asked(
            prompt,
            expected,
            lambda engine: engine.score(prompt, choices, unconditional),
            lambda scored: scored.usage,
        )

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        return await self._asked(
            prompt, 0, lambda engine: engine.commit_prefix(prompt, heads), lambda usage: usage
        )

    async def prefetch(self, prompt: Prompt) -> Usage:
        return await self._asked(
            prompt, 0, lambda engine: engine.prefetch(prompt), lambda usage: None
        )

    def with_adapter(self, name: str) -> Routed:
        engines = {key: each.with_adapter(name) for key, each in self._engines.items()}
        found = Routed(engines, self._reconnect_s)
        found._adapter, found._shared = name, self._shared
        return found

    async def close(self) -> None:
        await asyncio.gather(*(each.close() for each in self._engines.values()))

    # Beyond the interface.

    async def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """A vector of each text, all from one engine."""
        for name, engine in self._engines.items():
            if not hasattr(engine, "embed"):
                raise UsageError(
                    f"{name} gives no embeddings here: only our own engine does, over gRPC",
                    hint="name engines of `sgc serve` alone",
                )

        async def once(engine: Any) -> list[tuple[float, ...]]:
            vectors: list[tuple[float, ...]] = await engine.embed(texts)
            return vectors

        return await self._asked((), sum(map(len, texts)) / CHARACTERS, once, lambda _: None)

    async def flush_cache(self) -> int:
        """Drops the cached prefixes of all engines; returns the tokens freed."""
        engines: list[Any] = list(self._engines.values())
        freed = await asyncio.gather(*(each.flush_cache() for each in engines))
        self._shared.forget()
        return sum(freed)

    # Asking.

    async def _asked(
        self,
        prompt: Prompt,
        n_out: float,
        once: Callable[[Backend], Awaitable[T]],
        usage_of: Callable[[T], Usage | None],
    ) -> T:
        """The reply of the chosen engine, or of another one if that does not answer."""
        common = await self.capabilities()
        router = self._shared.router
        assert router is not None
        blocks = blocks_of(_text_of(prompt), self._shared.block, self._adapter)
        tried: dict[str, EngineUnavailable] = {}
        why: dict[str, EngineUnavailable] = {}
        until, n_lost = math.inf, 0
        while True:
            try:
                ticket = router.send(blocks, n_out, tried)
            except NobodyAnswers:
                now = asyncio.get_running_loop().time()
                until = min(until, now + self._reconnect_s)
                if now >= until:
                    raise self._nobody(why) from None
                await asyncio.sleep(PAUSE_S)
                tried.clear()
                continue
            try:
                reply = await once(await self._known(ticket.member.name, common))
            except EngineUnavailable as error:
                n_lost += not ticket.member.n_failed
                router.failed(ticket)
                if n_lost == MAX_LOST:  # the request may be what ends engines
                    raise
                tried[ticket.member.name] = why[ticket.member.name] = error
                continue
            except BaseException:
                router.left(ticket)
                raise
            router.done(ticket, _found(usage_of(reply), blocks))
            return reply

    async def _known(self, name: str, common: Capabilities) -> Backend:
        """An engine by its name. If it did not answer when all were asked for their model, it is
        checked now; raises UsageError if it has another model."""
        engine = self._engines[name]
        if name not in self._checked:
            _common({"the others": common, name: await engine.capabilities()})
            self._checked.add(name)
        return engine

    def _nobody(self, tried: Mapping[str, EngineUnavailable] | None = None) -> EngineUnavailable:
        why = "; ".join(f"{name}: {error.message}" for name, error in (tried or {}).items())
        return EngineUnavailable(
            f"none of {len(self._engines)} engines answers: {why or ', '.join(self._engines)}",
            hint="start one of them with `sgc serve`; the others are tried again as time passes",
        )


class _Shared:
    """The state that requests of all adapters share: the router, and the mean length of replies."""

    def __init__(self) -> None:
        self.router: Router | None = None
        self.block = LEAST_BLOCK
        self.mean_out = 64.0

    def begin(self, engines: Mapping[str, Backend], found: Mapping[str, Capabilities]) -> None:
        if self.router is not None:
            return
        pools = {name: told.pool_tokens or POOL for name, told in found.items()}
        largest = max(pools.values())
        self.block = max(LEAST_BLOCK, largest * CHARACTERS // MOST_HELD)
        self.router = Router(self.block / CHARACTERS)
        for name in engines:
            self.router.add(name, pools.get(name, largest) * CHARACTERS // self.block)

    def learn(self, n_out: int) -> None:
        self.mean_out += 0.05 * (n_out - self.mean_out)

    def forget(self) -> None:
        if self.router is not None:
            self.router.forget()


def _common(found: Mapping[str, Capabilities]) -> Capabilities:
    """The common description of all engines."""
    (first, one), *others = found.items()
    for name, other in others:
        if told := _difference(one, other):
            raise UsageError(
                f"{first} and {name} are not of one model: {told}",
                hint="engines that share requests have the same model, tokenizer and chat template",
            )
    each = list(found.values())
    pools = [told.pool_tokens for told in each]
    return replace(
        one,
        max_context=min(told.max_context for told in each),
        max_in_flight=sum(told.max_in_flight for told in each),
        refuses=frozenset().union(*(told.refuses for told in each)),
        images=all(told.images for told in each),
        prefetches=all(told.prefetches for told in each),
        joins=all(told.joins for told in each),
        pool_tokens=None if None in pools else sum(pool or 0 for pool in pools),
    )


def _difference(one: Capabilities, other: Capabilities) -> str:
    """The required properties in which two engines differ; "" if there are none."""
    if one.model != other.model:
        return f"{one.model} and {other.model}"
    names = {*one.fingerprints, *other.fingerprints}
    differing = [n for n in sorted(names) if one.fingerprints.get(n) != other.fingerprints.get(n)]
    return f"they differ in {' and '.join(differing)}" if differing else ""


def _text_of(prompt: Prompt) -> str:
    """A prompt as one text; an image as the name of its content."""
    parts = []
    for run in prompt:
        if isinstance(run, MediaRun):
            parts.append(f"{run.text}{run.media.digest}")
        else:
            parts.append(run.text)
    return "".join(parts)


def _found(usage: Usage | None, blocks: Sequence[int]) -> int | None:
    """How many of a prompt's blocks were cached."""
    if usage is None or not usage.prompt_tokens:
        return None
    return round(len(blocks) * usage.cached_tokens / usage.prompt_tokens)


def _first_usage(replies: tuple[Generated, ...]) -> Usage | None:
    return replies[0].usage if replies else None
