"""The client: frames, limits, cancelling, and what every kind of failure becomes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import grpc.aio
import pytest
from waiting import BOUND_S, until_async

from sgc.errors import (
    BackendError,
    ContextExceeded,
    EngineUnavailable,
    Overloaded,
    SgcError,
    UsageError,
)
from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends import persistence
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.backends.engine.ends import error_of
from sgc.runtime.executor.interface.backend import FinishReason, Prompt, Sampling, TextRun, TokenRun

HELLO: Prompt = (TextRun("Hello"),)
GREEDY = Sampling(max_tokens=10, temperature=0.0)
ENDLESS = Sampling(max_tokens=3000, ignore_eos=True)


def test_what_the_engine_is_is_asked_once(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first rows of a batch all want to know at once; gRPC refuses so many calls."""
    asked = []
    unary = EngineBackend._unary

    async def counted(self: EngineBackend, method: str, request: object) -> object:
        asked.append(method)
        return await unary(self, method, request)

    monkeypatch.setattr(EngineBackend, "_unary", counted)

    async def main() -> None:
        async with EngineBackend(engine.uri) as backend:
            await asyncio.gather(*(backend.generate(HELLO, GREEDY) for _ in range(500)))

    asyncio.run(main())
    assert asked == ["GetInfo"]


def test_generate_score_commit(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with EngineBackend(engine.uri) as backend:
            capabilities = await backend.capabilities()
            assert capabilities.model == "fake"
            assert capabilities.max_context == 4096
            assert len(capabilities.fingerprints["tokenizer"]) == 64
            deltas: list[str] = []
            sampling = Sampling(max_tokens=20, temperature=0.0, ignore_eos=True)
            streamed = await backend.generate(HELLO, sampling, deltas.append)
            plain = await backend.generate(HELLO, sampling)
            assert "".join(deltas) == streamed.text == plain.text
            assert plain.kept_ids == plain.ids
            assert (plain.finish_reason, plain.matched) == (FinishReason.LENGTH, None)
            more = (*HELLO, TokenRun(plain.kept_ids, plain.text), TextRun(" and"))
            scored = await backend.score(more, (" a", " b"))
            assert [len(choice.ids) for choice in scored.choices] == [1, 1]
            assert scored.usage.cached_tokens >= len(plain.ids)
            usage = await backend.commit_prefix(more, (" a", " b"))
            assert usage.completion_tokens == 0
            assert await backend.flush_cache() > 0
            assert (await backend.stats()).cached_pool_tokens == 0

    asyncio.run(main())


def test_seeds_decide_the_draw(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with EngineBackend(engine.uri) as backend:
            samplings = [Sampling(max_tokens=12, seed=seed) for seed in (1, 2, 1, 2**64 - 1)]
            texts = [(await backend.generate(HELLO, s)).text for s in samplings]
            assert texts[0] == texts[2]
            assert len(set(texts)) == 3

    asyncio.run(main())


async def is_idle(backend: EngineBackend) -> bool:
    return (await backend.stats()).running_requests == 0


def test_cancelling_a_call_frees_it(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with EngineBackend(engine.uri) as backend:
            calls = [asyncio.create_task(backend.generate(HELLO, ENDLESS)) for _ in range(10)]
            while (await backend.stats()).running_requests == 0:
                await asyncio.sleep(0.005)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            await until_async(lambda: is_idle(backend))
            assert (await backend.generate(HELLO, GREEDY)).ids

    asyncio.run(main())


def test_an_error_in_on_delta_ends_that_request_alone(engine: EmbeddedEngine) -> None:
    def fail(text: str) -> None:
        raise RuntimeError("mine")

    async def main() -> None:
        async with EngineBackend(engine.uri) as backend:
            with pytest.raises(RuntimeError, match="mine"):
                await backend.generate(HELLO, ENDLESS, fail)
            assert (await backend.generate(HELLO, GREEDY)).ids
            assert (await backend.stats()).running_requests == 0

    asyncio.run(main())


def test_refusals_are_typed(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with EngineBackend(engine.uri) as backend:
            with pytest.raises(ContextExceeded, match="holds at most 4096"):
                await backend.generate((TextRun("word " * 10_000),), GREEDY)
            with pytest.raises(BackendError, match=r"top_p must be in \(0, 1\], found nan"):
                await backend.generate(HELLO, Sampling(max_tokens=1, top_p=float("nan")))
            with pytest.raises(BackendError, match="out of range"):
                await backend.generate(HELLO, Sampling(max_tokens=-1))
            with pytest.raises(BackendError, match="lone surrogate"):
                await backend.generate((TextRun("a\ud800"),), GREEDY)
            with pytest.raises(BackendError, match="a choice holds a lone surrogate"):
                await backend.score(HELLO, ("\udcff",))
            with pytest.raises(ContextExceeded, match=r"a prompt of \d+ bytes; this engine"):
                await backend.generate((TextRun("x" * 17_000_000),), GREEDY)
            with pytest.raises(BackendError, match=r"a request of .* is too large; at most"):
                await backend.score(HELLO, ("x" * 17_000_000,))
            assert (await backend.generate(HELLO, GREEDY)).ids

    asyncio.run(main())


def test_a_stopped_engine_fails_what_is_pending() -> None:
    async def main() -> None:
        engine = EmbeddedEngine("fake").start()
        async with EngineBackend(engine.uri) as backend:
            calls = [asyncio.create_task(backend.generate(HELLO, ENDLESS)) for _ in range(3)]
            while (await backend.stats()).running_requests == 0:
                await asyncio.sleep(0.005)
            await asyncio.to_thread(engine.stop)
            for result in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(result, EngineUnavailable), result
                assert result.retryable
            with pytest.raises(EngineUnavailable):
                await backend.generate(HELLO, GREEDY)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("details", "kind"),
    [("Internal error from Core", Overloaded), ("a fault of the server", EngineUnavailable)],
)
def test_what_a_stream_that_ended_while_it_was_written_to_is(
    details: str, kind: type[BackendError]
) -> None:
    ended = grpc.aio.AioRpcError(
        grpc.StatusCode.INTERNAL, grpc.aio.Metadata(), grpc.aio.Metadata(), details
    )
    assert type(error_of(ended, "grpc://here:1", 1.0)) is kind


def test_an_unreachable_engine_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        for uri in ("grpc://127.0.0.1:1", f"unix:{tmp_path / 'none'}"):
            async with EngineBackend(uri, connect_timeout_s=0.3) as backend:
                with pytest.raises(EngineUnavailable, match=f"no engine at {uri}.*\n.*sgc serve"):
                    await backend.capabilities()

    asyncio.run(main())


def test_nothing_is_waited_for_where_nobody_listens(tmp_path: Path) -> None:
    async def main() -> None:
        for uri, why in (
            ("grpc://127.0.0.1:1", "connection refused"),
            (f"unix:{tmp_path / 'none'}", "no such socket"),
        ):
            async with EngineBackend(uri, connect_timeout_s=10 * BOUND_S) as backend:
                with pytest.raises(EngineUnavailable, match=why):
                    await asyncio.wait_for(backend.capabilities(), BOUND_S)

    asyncio.run(main())


def test_no_tokens_asked_none_given(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with EngineBackend(engine.uri) as backend:
            for on_delta in (None, lambda text: None):
                result = await backend.generate(HELLO, Sampling(max_tokens=0), on_delta)
                assert (result.text, result.ids) == ("", ())
                assert result.finish_reason is FinishReason.LENGTH
                assert result.usage.prompt_tokens > 0

    asyncio.run(main())


def test_a_token_must_be_printable_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGC_TOKEN", "na\u00efve")
    with pytest.raises(UsageError, match=r"SGC_TOKEN.*printable ASCII"):
        EngineBackend("grpc://127.0.0.1:1")


@pytest.mark.slow
def test_grpc_logs_nothing_unless_asked() -> None:
    module = "sgc.runtime.executor.backends.engine.backend"
    code = f"import os, {module}; print(os.environ['GRPC_VERBOSITY'])"
    for env, expected in (({}, "NONE"), ({"GRPC_VERBOSITY": "INFO"}, "INFO")):
        plain = {k: v for k, v in os.environ.items() if k != "GRPC_VERBOSITY"}
        done = subprocess.run(
            [sys.executable, "-P", "-c", code], capture_output=True, text=True, env=plain | env
        )
        assert done.stdout.strip() == expected


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "localhost:1",
        "http://a:1",
        "grpc://a",
        "unix:",
        "grpc://:1",
        "grpc://a:0",
        "grpc://a:65536",
    ],
)
def test_addresses_that_cannot_be_used(uri: str) -> None:
    with pytest.raises(UsageError, match="expected grpc://host:port"):
        EngineBackend(uri)


class Scripted(engine_pb2_grpc.EngineServicer):
    """An engine that answers each request as a function says, and counts frames."""

    def __init__(self, answer: Callable[[pb.Request, int], pb.Reply]) -> None:
        self.answer = answer
        self.n_frames = 0
        self.n_requests = 0
        self.cancels: list[int] = []

    async def GetInfo(self, request: object, context: object) -> pb.Info:
        return pb.Info(model="scripted", max_in_flight=50, max_message_bytes=1_000_000)

    async def Session(
        self, frames: AsyncIterator[pb.ClientFrame], context: object
    ) -> AsyncIterator[pb.ServerFrame]:
        async for frame in frames:
            self.n_frames += 1
            self.cancels += frame.cancels
            replies = []
            for request in frame.requests:
                self.n_requests += 1
                replies.append(self.answer(request, self.n_requests))
            yield pb.ServerFrame(replies=replies)


@asynccontextmanager
async def scripted(
    answer: Callable[[pb.Request, int], pb.Reply], path: Path
) -> AsyncIterator[tuple[Scripted, EngineBackend]]:
    servicer, server = Scripted(answer), grpc.aio.server()
    engine_pb2_grpc.add_EngineServicer_to_server(servicer, server)
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    try:
        async with EngineBackend(f"unix:{path}") as backend:
            yield servicer, backend
    finally:
        await server.stop(0)


def committed(request: pb.Request, n: int) -> pb.Reply:
    return pb.Reply(id=request.id, committed=pb.Committed())


def overloaded(request: pb.Request, n: int) -> pb.Reply:
    error = pb.Error(code=pb.ERROR_CODE_RESOURCE_EXHAUSTED, message="full")
    return pb.Reply(id=request.id, error=error)


def test_requests_of_a_tick_go_in_one_frame(tmp_path: Path) -> None:
    async def main() -> None:
        async with scripted(committed, tmp_path / "s") as (servicer, backend):
            await backend.commit_prefix(HELLO)
            before = servicer.n_frames
            await asyncio.gather(*[backend.commit_prefix(HELLO) for _ in range(40)])
            assert servicer.n_frames - before <= 2

    asyncio.run(main())


def test_no_more_than_max_in_flight_are_sent(tmp_path: Path) -> None:
    def never(request: pb.Request, n: int) -> pb.Reply:
        return pb.Reply()

    async def main() -> None:
        async with scripted(never, tmp_path / "s") as (servicer, backend):
            calls = [asyncio.create_task(backend.commit_prefix(HELLO)) for _ in range(80)]
            while servicer.n_requests < 50:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.05)
            assert servicer.n_requests == 50
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            while len(servicer.cancels) < 50:
                await asyncio.sleep(0.005)

    asyncio.run(main())


def test_overload_is_tried_again_then_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistence, "RETRIES", replace(persistence.RETRIES, first_wait_s=0.001))

    def third_time(request: pb.Request, n: int) -> pb.Reply:
        return (overloaded if n < 3 else committed)(request, n)

    async def main() -> None:
        async with scripted(third_time, tmp_path / "a") as (servicer, backend):
            await backend.commit_prefix(HELLO)
            assert servicer.n_requests == 3
        async with scripted(overloaded, tmp_path / "b") as (servicer, backend):
            with pytest.raises(Overloaded, match="full"):
                await backend.commit_prefix(HELLO)
            assert servicer.n_requests == 6

    asyncio.run(main())


def test_a_fault_of_the_engine_is_told_and_not_met_again(tmp_path: Path) -> None:
    def fails(request: pb.Request, n: int) -> pb.Reply:
        raise ZeroDivisionError("its own")

    async def main() -> None:
        async with scripted(fails, tmp_path / "s") as (servicer, backend):
            with pytest.raises(BackendError, match=r"the engine at .* failed: .*its own") as error:
                await asyncio.wait_for(backend.commit_prefix(HELLO), BOUND_S)
            assert type(error.value) is BackendError
            assert servicer.n_requests == 1

    asyncio.run(main())


def test_a_wrong_kind_of_answer_is_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with scripted(committed, tmp_path / "s") as (_, backend):
            with pytest.raises(SgcError, match="answered with committed, not generated"):
                await backend.generate(HELLO, GREEDY)

    asyncio.run(main())


def test_the_interface_needs_no_grpc() -> None:
    code = (
        "import sys, sgc.runtime.executor.interface.backend, sgc.runtime.engine.launch;"
        "print([m for m in ('grpc', 'torch', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
