"""Prefetches over gRPC: what they compute, what is told of them, and that they can be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from waiting import BOUND_S

from sgc.errors import ContextExceeded
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Prompt, Sampling, TextRun, TokenRun, Usage

TEXT: Prompt = (TextRun("A long way to say one thing, and again. " * 40),)
GREEDY = Sampling(max_tokens=4, temperature=0.0)


def on(engine: EmbeddedEngine, main: Callable[[EngineBackend], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with EngineBackend(engine.uri) as backend:
            await backend.flush_cache()
            await main(backend)

    asyncio.run(asyncio.wait_for(run(), BOUND_S))


def test_it_is_computed_once_and_found_by_what_follows(engine: EmbeddedEngine) -> None:
    async def main(backend: EngineBackend) -> None:
        assert (await backend.capabilities()).prefetches
        before = await backend.stats()
        usage = await backend.prefetch(TEXT)
        assert usage.computed_tokens == usage.prompt_tokens > 100
        assert await backend.prefetch(TEXT) == Usage(), "it has just been done"
        reply = await backend.generate((TextRun(TEXT[0].text + "So"),), GREEDY)
        assert reply.usage.cached_tokens == usage.prompt_tokens
        more = (*TEXT, TokenRun(reply.ids, reply.text), TextRun(" Then " + TEXT[0].text))
        assert (await backend.prefetch(more)).cached_tokens >= usage.prompt_tokens
        after = await backend.stats()
        assert after.prefetches - before.prefetches == 2
        assert after.prefetched_tokens - before.prefetched_tokens > usage.prompt_tokens
        n_sums = after.computed_tokens - before.computed_tokens
        assert n_sums == reply.usage.computed_tokens, "they are in no other sum"
        assert after.finished_requests - before.finished_requests == 3

    on(engine, main)


def test_whatever_follows_finds_no_token_that_is_another(engine: EmbeddedEngine) -> None:
    async def main(backend: EngineBackend) -> None:
        usage = await backend.prefetch((TextRun(TEXT[0].text + "and a bor"),))
        reply = await backend.generate((TextRun(TEXT[0].text + "and a border"),), GREEDY)
        assert reply.usage.cached_tokens == usage.prompt_tokens

    on(engine, main)


def test_one_that_is_cancelled_is_forgotten(engine: EmbeddedEngine) -> None:
    async def main(backend: EngineBackend) -> None:
        long = (TextRun("word " * 3000),)
        call = asyncio.create_task(backend.prefetch(long))
        await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        while (stats := await backend.stats()).waiting_prefetches or stats.in_flight_requests:
            await asyncio.sleep(0.005)
        assert (await backend.prefetch(long)).prompt_tokens > 2000

    on(engine, main)


def test_one_that_is_too_long_is_refused_at_once(engine: EmbeddedEngine) -> None:
    async def main(backend: EngineBackend) -> None:
        with pytest.raises(ContextExceeded, match="holds at most"):
            await backend.prefetch((TextRun("word " * 9000),))
        assert (await backend.stats()).waiting_prefetches == 0

    on(engine, main)
