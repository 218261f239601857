"""The server end to end, on the fake model: one stream, many requests, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from waiting import BOUND_S, until, until_async

from sgc.proto import engine_pb2 as pb
from sgc.proto import engine_pb2_grpc
from sgc.runtime.engine.launch import EmbeddedEngine

SAMPLING = {"max_tokens": 8, "temperature": 0.0, "top_p": 1.0, "top_k": -1}


def text_prompt(text: str) -> pb.Prompt:
    return pb.Prompt(segments=[pb.Segment(text=pb.TextRun(text=text))])


def generate(request_id: int, text: str = "Hello", stream: bool = False, **more: Any) -> pb.Request:
    sampling = pb.Sampling(**{**SAMPLING, "repetition_penalty": 1.0, **more})
    return pb.Request(
        id=request_id,
        prompt=text_prompt(text),
        generate=pb.Generate(sampling=sampling, stream=stream),
    )


def endless(request_id: int) -> pb.Request:
    return generate(request_id, f"Endless {request_id}", max_tokens=3000, ignore_eos=True)


@asynccontextmanager
async def connected(uri: str) -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(uri) as channel:
        yield engine_pb2_grpc.EngineStub(channel)


async def replies_of(call: Any, ids: Iterable[int]) -> dict[int, list[pb.Reply]]:
    """Reads until every id has its final reply."""
    found: dict[int, list[pb.Reply]] = {i: [] for i in ids}
    left = set(found)
    while left:
        frame = await call.read()
        assert frame is not grpc.aio.EOF, left
        for reply in frame.replies:
            found[reply.id].append(reply)
            if not reply.HasField("delta"):
                left.remove(reply.id)
    return found


async def assert_nothing_runs(stub: Any) -> None:
    async def is_idle() -> bool:
        stats = await stub.GetStats(pb.StatsRequest())
        return stats.running_requests == stats.waiting_requests == 0

    await until_async(is_idle)
    await stub.FlushCache(pb.FlushCacheRequest())
    stats = await stub.GetStats(pb.StatsRequest())
    assert stats.free_tokens == stats.pool_tokens
    assert stats.cached_pool_tokens == 0


def test_deltas_concatenate_to_the_text(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with connected(engine.uri) as stub:
            call = stub.Session()
            long = {"max_tokens": 900, "ignore_eos": True, "stop": ["zz"]}  # of many deltas
            plain, streamed = generate(1, **long), generate(2, stream=True, **long)
            await call.write(pb.ClientFrame(requests=[plain, streamed]))
            replies = await replies_of(call, [1, 2])
            final = replies[2][-1].generated
            deltas = [reply.delta.text for reply in replies[2][:-1]]
            assert len(deltas) > 1  # a busy machine sends many tokens at once
            assert "".join(deltas) == final.text == replies[1][0].generated.text
            assert list(final.ids) == list(replies[1][0].generated.ids)
            assert final.kept == len(final.ids) == 900
            assert (final.finish_reason, final.matched_id) == (pb.FINISH_REASON_LENGTH, -1)

    asyncio.run(main())


def test_stop_string_is_cut_and_the_rest_joins_the_next_run(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with connected(engine.uri) as stub:
            call = stub.Session()
            await call.write(pb.ClientFrame(requests=[generate(1, max_tokens=40, ignore_eos=True)]))
            whole = (await replies_of(call, [1]))[1][0].generated.text
            stop = whole[len(whole) // 2 :][:3]
            request = generate(2, stream=True, max_tokens=40, ignore_eos=True, stop=[stop])
            await call.write(pb.ClientFrame(requests=[request]))
            replies = (await replies_of(call, [2]))[2]
            final = replies[-1].generated
            assert (final.matched, final.finish_reason) == (stop, pb.FINISH_REASON_STOP)
            assert final.text == whole[: whole.index(stop)]
            assert "".join(reply.delta.text for reply in replies[:-1]) == final.text
            assert final.text.endswith(final.tail)
            # The prompt goes on with the kept ids and the tail, and all of it is cached.
            segments = [
                pb.Segment(text=pb.TextRun(text="Hello")),
                pb.Segment(tokens=pb.TokenRun(ids=final.ids[: final.kept])),
            ]
            goes_on = generate(3)
            goes_on.prompt.CopyFrom(pb.Prompt(segments=segments))
            await call.write(pb.ClientFrame(requests=[goes_on]))
            usage = (await replies_of(call, [3]))[3][0].generated.usage
            assert usage.computed_tokens <= 1

    asyncio.run(main())


def test_many_requests_share_frames(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with connected(engine.uri) as stub:
            call = stub.Session()
            requests = [generate(i, f"Prompt {i % 7}", max_tokens=1) for i in range(200)]
            await call.write(pb.ClientFrame(requests=requests))
            n_frames, n_replies = 0, 0
            while n_replies < 200:
                n_replies += len((await call.read()).replies)
                n_frames += 1
            assert n_frames <= 20
            await call.done_writing()
            assert await call.read() is grpc.aio.EOF
            assert await call.code() is grpc.StatusCode.OK

    asyncio.run(main())


def test_many_sessions_share_a_connection(engine: EmbeddedEngine) -> None:
    async def check() -> None:
        async with connected(engine.uri) as stub:
            calls = [stub.Session(timeout=BOUND_S) for _ in range(100)]
            for call in calls:
                await call.write(pb.ClientFrame(requests=[generate(1)]))
            found = [(await replies_of(call, [1]))[1] for call in calls]
            assert len({replies[-1].generated.text for replies in found}) == 1
            for call in calls:
                call.cancel()

    asyncio.run(check())


def test_scores_and_commits(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with connected(engine.uri) as stub:
            call = stub.Session()
            score = pb.Score(choices=[" yes", " no", " yes"])
            prompt = text_prompt("Is the answer right?")
            requests = [
                pb.Request(id=1, prompt=prompt, score=score),
                pb.Request(id=2, prompt=text_prompt("Here is a long text. " * 20), commit={}),
            ]
            await call.write(pb.ClientFrame(requests=requests))
            replies = await replies_of(call, [1, 2])
            choices = replies[1][0].scored.choices
            assert [len(c.ids) for c in choices] == [len(c.logprobs) for c in choices]
            assert choices[0] == choices[2]
            usage = replies[2][0].committed.usage
            assert usage.prompt_tokens == usage.cached_tokens + usage.computed_tokens > 50

    asyncio.run(main())


def test_bad_requests_get_errors_and_the_stream_goes_on(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with connected(engine.uri) as stub:
            call = stub.Session()
            bad = [
                pb.Request(id=1),
                generate(2, temperature=float("nan")),
                generate(3, text="word " * 200_000),
                generate(4, stop=["x"] * 100),
                pb.Request(id=5, prompt=text_prompt("a"), score=pb.Score(choices=[""])),
            ]
            await call.write(pb.ClientFrame(requests=[*bad, generate(6)]))
            replies = await replies_of(call, range(1, 7))
            codes = [replies[i][0].error.code for i in range(1, 6)]
            invalid, context = pb.ERROR_CODE_INVALID_ARGUMENT, pb.ERROR_CODE_CONTEXT_EXCEEDED
            assert codes == [invalid, invalid, context, invalid, invalid]
            assert replies[6][0].HasField("generated")
            await assert_nothing_runs(stub)

    asyncio.run(main())


def test_an_id_used_twice_ends_both(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with connected(engine.uri) as stub:
            call = stub.Session()
            await call.write(pb.ClientFrame(requests=[endless(1)]))
            await asyncio.sleep(0.05)
            await call.write(pb.ClientFrame(requests=[endless(1), generate(2)]))
            replies = await replies_of(call, [1, 2])
            assert replies[1][0].error.code == pb.ERROR_CODE_INVALID_ARGUMENT
            await assert_nothing_runs(stub)

    asyncio.run(main())


def test_unfinished_requests_are_limited(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with connected(engine.uri) as stub:
            info = await stub.GetInfo(pb.InfoRequest())
            call = stub.Session()
            n = info.max_in_flight
            await call.write(pb.ClientFrame(requests=[endless(i) for i in range(n)]))
            await call.write(pb.ClientFrame(requests=[generate(n + 1)]))
            replies = await replies_of(call, [n + 1])
            assert replies[n + 1][0].error.code == pb.ERROR_CODE_RESOURCE_EXHAUSTED
            await call.write(pb.ClientFrame(cancels=range(n), requests=[generate(n + 2)]))
            await assert_nothing_runs(stub)

    asyncio.run(main())


def test_cancel_frees_at_once_and_gets_no_reply(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with connected(engine.uri) as stub:
            call = stub.Session()
            before = (await stub.GetStats(pb.StatsRequest())).steps
            await call.write(pb.ClientFrame(requests=[endless(1), endless(2), endless(3)]))
            await asyncio.sleep(0.03)
            await call.write(pb.ClientFrame(cancels=[1, 2, 3, 99], requests=[endless(4)]))
            await call.write(pb.ClientFrame(cancels=[4]))
            await assert_nothing_runs(stub)
            assert (await stub.GetStats(pb.StatsRequest())).steps - before < 3000  # to their ends
            await call.write(pb.ClientFrame(requests=[generate(5)]))
            await replies_of(call, [5])

    asyncio.run(main())


def test_disconnect_frees_what_the_session_ran(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with connected(engine.uri) as stub:
            for end in ("cancel", "close"):
                async with grpc.aio.insecure_channel(engine.uri) as other:
                    call = engine_pb2_grpc.EngineStub(other).Session()
                    await call.write(pb.ClientFrame(requests=[endless(i) for i in range(20)]))
                    await asyncio.sleep(0.03)
                    if end == "cancel":
                        call.cancel()
                await assert_nothing_runs(stub)

    asyncio.run(main())


def test_oversized_frame_ends_only_its_stream(engine: EmbeddedEngine) -> None:
    async def main() -> None:
        async with connected(engine.uri) as stub:
            call = stub.Session()
            await call.write(pb.ClientFrame(requests=[generate(1, "x" * 17 * 1024 * 1024)]))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call.read()
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            fresh = stub.Session()
            await fresh.write(pb.ClientFrame(requests=[generate(1)]))
            await replies_of(fresh, [1])

    asyncio.run(main())


def test_info_health_and_reflection(engine: EmbeddedEngine) -> None:
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    async def main() -> None:
        async with grpc.aio.insecure_channel(engine.uri) as channel:
            info = await engine_pb2_grpc.EngineStub(channel).GetInfo(pb.InfoRequest())
            assert (info.model, info.max_context, info.pool_tokens) == ("fake", 4096, 20000)
            assert info.chat.roles["user"].prefix == "<|im_start|>user\n"
            assert info.chat.from_model
            assert "<|endoftext|>" in info.special_tokens
            health = health_pb2_grpc.HealthStub(channel)
            answer = await health.Check(
                health_pb2.HealthCheckRequest(service="sgc.engine.v1.Engine")
            )
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
            listing = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
            await listing.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            names = {s.name for s in (await listing.read()).list_services_response.service}
            assert "sgc.engine.v1.Engine" in names
            await listing.done_writing()

    asyncio.run(main())


def test_death_of_the_worker_fails_requests_and_ends_the_server() -> None:
    async def main(engine: EmbeddedEngine) -> None:
        async with connected(engine.uri) as stub:
            call = stub.Session()
            await call.write(pb.ClientFrame(requests=[endless(1), endless(2)]))
            await stub.GetStats(pb.StatsRequest())
            os.kill(_worker_pid(engine), signal.SIGKILL)
            replies = await replies_of(call, [1, 2])
            assert replies[1][0].error.code == pb.ERROR_CODE_UNAVAILABLE
            assert "worker process ended" in replies[2][0].error.message

    with EmbeddedEngine("fake") as engine:
        process = engine._process
        assert process is not None
        asyncio.run(main(engine))
        assert process.wait(BOUND_S) == 1
        until(lambda: "error: the engine's worker" in engine.stderr_tail)


def _worker_pid(engine: EmbeddedEngine) -> int:
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == engine.pid and b"sgc.runtime.engine.worker" in command:
            return int(status.parent.name)
    raise AssertionError("no worker found")


@pytest.mark.parametrize(
    "method",
    [
        "sgc.engine.v1.Engine/GetInfo",
        "sgc.engine.v1.Engine/GetStats",
        "sgc.engine.v1.Engine/FlushCache",
        "grpc.health.v1.Health/Check",
    ],
)
@pytest.mark.parametrize("data", [b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x08"])
def test_what_is_no_message_is_an_invalid_argument(
    engine: EmbeddedEngine, method: str, data: bytes
) -> None:
    async def main() -> None:
        async with grpc.aio.insecure_channel(engine.uri) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await channel.unary_unary(f"/{method}")(data, timeout=5)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "no message of this call" in str(caught.value.details())

    asyncio.run(main())


@pytest.mark.parametrize(
    "method",
    [
        "sgc.engine.v1.Engine/Session",
        "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ],
)
def test_what_is_no_message_ends_its_stream_alone(engine: EmbeddedEngine, method: str) -> None:
    async def main() -> None:
        async with grpc.aio.insecure_channel(engine.uri) as channel:
            call = channel.stream_stream(f"/{method}")()
            if "Session" in method:
                frame = pb.ClientFrame(requests=[endless(1)])
                await call.write(frame.SerializeToString())
            await call.write(b"\xff\xff\xff")
            assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
        async with connected(engine.uri) as stub:
            await assert_nothing_runs(stub)

    asyncio.run(main())
