"""Nobody keeps a place that he does not use: silent sessions, and texts nobody waits for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

import grpc
import grpc.aio
import pytest
from tokenizers import Tokenizer as Backend

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.preparing.bounds import MAX_MESSAGE_BYTES, ServerLimits, most_frame_bytes
from sgc.runtime.engine.server.lanes import Lane
from sgc.runtime.engine.server.listen import Security
from sgc.runtime.engine.server.server import EngineFacts, EngineServer
from sgc.runtime.engine.server.session import INLINE_CHARS
from sgc.runtime.engine.server.shared import Shared
from sgc.runtime.engine.text.template import PLAIN
from sgc.runtime.engine.text.tokenizer import Tokenizer
from sgc.runtime.engine.worker.link import WorkerLink
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Prompt, TextRun

LIMITS = ServerLimits(8192, 8192, 3072, max_sessions=4)
READY = wpb.Ready(max_context=8192, pool_tokens=8192, vocab_size=3072)
HELLO: Prompt = (TextRun("Hello"),)


class Link:
    """A step process that commits at once, or never."""

    def __init__(self) -> None:
        self.answers = True
        self.n_submitted = 0

    def submit(self, work: wpb.WorkerRequest, on_update: Callable[[wpb.Update], None]) -> int:
        self.n_submitted += 1
        if self.answers:
            asyncio.get_running_loop().call_soon(on_update, wpb.Update(final=True))
        return self.n_submitted

    def cancel(self, worker_id: int) -> None:
        """Nothing is under way."""


@asynccontextmanager
async def serving(
    tokenizer: Tokenizer, limits: ServerLimits = LIMITS
) -> AsyncIterator[tuple[str, Shared, Link]]:
    link = Link()
    shared = Shared(tokenizer, cast(WorkerLink, link), limits)
    server = EngineServer(Security(), limits)
    port = server.grpc.add_insecure_port("127.0.0.1:0")
    await server.start(EngineFacts("fake", READY, PLAIN, tokenizer, limits), shared)
    try:
        yield f"grpc://127.0.0.1:{port}", shared, link
    finally:
        await server.stop("over")
        shared.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def silent(uri: str, n: int) -> AsyncIterator[list[Any]]:
    """So many streams on which nothing is said."""
    async with grpc.aio.insecure_channel(uri.removeprefix("grpc://")) as channel:
        calls = [channel.stream_stream("/sgc.engine.v1.Engine/Session")() for _ in range(n)]
        yield calls


def test_silent_sessions_give_way_to_whoever_asks(shipped: Tokenizer) -> None:
    async def main() -> None:
        async with serving(shipped) as (uri, shared, _), silent(uri, 12) as calls:
            await until(lambda: len(shared.sessions) == 4)
            for _ in range(5):
                async with EngineBackend(uri) as backend:
                    await backend.commit_prefix(HELLO)
            ended = [call for call in calls if call.done()]
            assert len(ended) >= 8
            assert {await call.code() for call in ended} == {grpc.StatusCode.ABORTED}

    asyncio.run(main())


def test_our_client_goes_on_after_its_silent_session_was_ended(shipped: Tokenizer) -> None:
    """A run that waits for a tool for minutes has a silent stream, and may lose it unnoticed."""

    async def main() -> None:
        async with serving(shipped) as (uri, _, _), EngineBackend(uri) as backend:
            await backend.commit_prefix(HELLO)
            for _ in range(3):
                async with silent(uri, 12):  # which takes its place
                    own = backend._stream
                    assert own is not None
                    while own.is_open:
                        await asyncio.sleep(0.005)
                    await asyncio.gather(*(backend.commit_prefix(HELLO) for _ in range(20)))

    asyncio.run(main())


def test_what_was_sent_as_the_session_was_ended_is_sent_again(shipped: Tokenizer) -> None:
    async def main() -> None:
        async with serving(shipped) as (uri, shared, link), EngineBackend(uri) as backend:
            for _ in range(20):
                await backend.commit_prefix(HELLO)
                (session,) = shared.sessions
                asked = asyncio.ensure_future(backend.commit_prefix(HELLO))
                await asyncio.sleep(0)
                session.end_silent("its slot was needed")
                await asked
            assert link.n_submitted == 40

    asyncio.run(main())


def test_a_session_may_be_silent_for_so_long(shipped: Tokenizer) -> None:
    async def main() -> None:
        limits = replace(LIMITS, max_silence_s=0.2)
        async with serving(shipped, limits) as (uri, shared, link), EngineBackend(uri) as backend:
            await backend.commit_prefix(HELLO)
            (first,) = shared.sessions
            await until(lambda: not shared.sessions)
            assert first.is_silent
            await backend.commit_prefix(HELLO)  # and goes on after that
            link.answers = False
            asked = asyncio.ensure_future(backend.commit_prefix(HELLO))
            await until(lambda: link.n_submitted == 3)
            await asyncio.sleep(0.4)
            assert len(shared.sessions) == 1  # who waits for an answer is not silent
            asked.cancel()

    asyncio.run(main())


def test_sessions_with_unfinished_requests_are_not_ended(shipped: Tokenizer) -> None:
    async def main() -> None:
        async with serving(shipped) as (uri, shared, link):
            link.answers = False
            backends = [EngineBackend(uri) for _ in range(4)]
            asked = [asyncio.ensure_future(each.commit_prefix(HELLO)) for each in backends]
            await until(lambda: link.n_submitted == 4)
            async with silent(uri, 1) as (call,):
                assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert len(shared.sessions) == 4
            for task in asked:
                task.cancel()
            for backend in backends:
                await backend.close()

    asyncio.run(main())


def test_the_clients_of_one_token_have_a_part_of_the_places(shipped: Tokenizer) -> None:
    class Busy:
        is_silent = False
        silent_since = 0.0
        owner: object = b"alpha"

    limits = replace(LIMITS, max_sessions_of_token=2)
    shared = Shared(shipped, cast(WorkerLink, Link()), limits)
    shared.sessions.update(cast(Any, {Busy(), Busy()}))
    assert not shared.has_room(b"alpha")
    assert shared.has_room(b"beta")
    shared.close()


# Frames.


def test_a_frame_larger_than_any_prompt_that_fits_is_not_read(shipped: Tokenizer) -> None:
    most = most_frame_bytes(shipped, LIMITS.max_positions)
    assert most < MAX_MESSAGE_BYTES

    async def send(uri: str, n_bytes: int) -> tuple[grpc.StatusCode, list[pb.ServerFrame]]:
        text = pb.Segment(text=pb.TextRun(text="x" * n_bytes))
        frame = pb.ClientFrame(requests=[pb.Request(id=1, prompt=pb.Prompt(segments=[text]))])
        async with grpc.aio.insecure_channel(uri.removeprefix("grpc://")) as channel:
            call = channel.stream_stream(
                "/sgc.engine.v1.Engine/Session",
                request_serializer=pb.ClientFrame.SerializeToString,
                response_deserializer=pb.ServerFrame.FromString,
            )(iter([frame]))
            with contextlib.suppress(grpc.RpcError):
                return grpc.StatusCode.OK, [reply async for reply in call]
            return await call.code(), []

    async def main() -> None:
        async with serving(shipped, replace(LIMITS, max_frame_bytes=most)) as (uri, shared, _):
            assert await send(uri, most) == (grpc.StatusCode.RESOURCE_EXHAUSTED, [])
            assert shared.tally.requests == 0
            code, [frame] = await send(uri, most - 64)
            assert code is grpc.StatusCode.OK
            assert frame.replies[0].error.code == pb.ERROR_CODE_CONTEXT_EXCEEDED

    asyncio.run(main())


# Texts.


def large_commit(request_id: int, mark: str) -> pb.Request:
    run = pb.TextRun(text=f"{request_id} {mark} " + "word " * (INLINE_CHARS // 4))
    return pb.Request(
        id=request_id, prompt=pb.Prompt(segments=[pb.Segment(text=run)]), commit=pb.Commit()
    )


def test_other_threads_run_while_a_text_is_tokenized(shipped: Tokenizer) -> None:
    """The longest time that this thread does not come to its turn is a small part of it."""

    def longest_gap_s(work: Callable[[], object]) -> tuple[float, float]:
        with ThreadPoolExecutor(1) as threads:
            start = last = time.perf_counter()
            running, gap = threads.submit(work), 0.0
            while not running.done():
                time.sleep(0.0005)
                now = time.perf_counter()
                gap, last = max(gap, now - last), now
            return gap, last - start

    text = "the quick brown fox " * 40_000
    found = [longest_gap_s(partial(shipped.encode_continuation, f"{text}{i}")) for i in range(3)]
    assert min(gap / whole for gap, whole in found) < 0.5


def test_ids_are_those_of_plain_encoding(shipped: Tokenizer) -> None:
    backend: Backend = shipped.backend
    for text in ("", "Hello", "the quick brown fox " * 500, "naïve 世界 🙂\n\n  x", "<|end|>" * 3):
        assert (
            shipped.encode_continuation(text) == backend.encode(text, add_special_tokens=False).ids
        )


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_texts_that_nobody_waits_for_are_dropped(
    shipped: Tokenizer, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The queue is empty at once, and of what runs the rest is left."""
    gate, n_encoded = threading.Event(), []
    fresh = Tokenizer._encode_fresh

    def slow(self: Tokenizer, run: Any, at_start: bool) -> tuple[int, ...]:
        if len(run.text) > INLINE_CHARS:
            n_encoded.append(run.text[:2])
            gate.wait(5)
        return fresh(self, run, at_start)

    monkeypatch.setattr(Tokenizer, "_encode_fresh", slow)

    async def main() -> None:
        async with serving(shipped) as (uri, shared, link), EngineBackend(uri) as backend:
            stub = await backend._connected()
            call = stub.Session()
            await call.write(pb.ClientFrame(requests=[large_commit(i, how) for i in range(6)]))
            await until(lambda: len(n_encoded) == 1)
            if how == "cancel":
                await call.write(pb.ClientFrame(cancels=range(6)))
            else:
                call.cancel()
            await until(lambda: shared.preparing_chars == 0)
            gate.set()
            await backend.commit_prefix((TextRun(f"y {how} " + "word " * INLINE_CHARS),), ("",))
            assert n_encoded == ["0 ", "y "]
            assert link.n_submitted == 1

    asyncio.run(main())


def test_a_lane_gives_its_threads_in_turn() -> None:
    async def main() -> None:
        lane, order = Lane("test"), []
        gate = threading.Event()
        first = asyncio.ensure_future(lane.run("a", lambda _: gate.wait(5)))
        await asyncio.sleep(0)

        def job(name: str) -> Callable[[threading.Event], None]:
            return lambda _: order.append(name)

        owners = ["a", "a", "a", "a", "b", "b", "c"]
        waiting = [
            asyncio.ensure_future(lane.run(owner, job(f"{owner}{i}")))
            for i, owner in enumerate(owners)
        ]
        await asyncio.sleep(0)
        waiting[1].cancel()
        gate.set()
        await asyncio.gather(first, *waiting, return_exceptions=True)
        assert order == ["a0", "b4", "c6", "a2", "b5", "a3"]
        assert await lane.run("d", lambda _: 7) == 7
        lane.close()

    asyncio.run(main())


def test_a_turn_that_is_cancelled_as_it_comes_costs_no_thread() -> None:
    """The thread becomes free in the tick in which the next in the queue is cancelled, whose task
    has not run since: it would be given to nobody, and every later job would wait for ever."""

    async def main() -> None:
        lane, gate = Lane("test"), threading.Event()
        first = asyncio.ensure_future(lane.run("a", lambda _: gate.wait(5)))
        await asyncio.sleep(0)
        waiting = [asyncio.ensure_future(lane.run(owner, lambda _: 1)) for owner in "bbc"]
        await asyncio.sleep(0)
        waiting[0].cancel()
        waiting[2].cancel()
        lane._next()  # as the thread does once it has ended its job
        gate.set()
        await asyncio.gather(first, *waiting, return_exceptions=True)
        assert await asyncio.wait_for(lane.run("d", lambda _: 7), 5) == 7
        assert not lane._waiting
        lane.close()

    asyncio.run(main())
