"""What every call may say: how long it may take, after which the engine ends it; its priority."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from engine.http.conftest import HttpEngine
from waiting import until

from sgc.errors import DeadlineExceeded
from sgc.proto import engine_pb2 as pb
from sgc.proto.engine_pb2_grpc import EngineStub
from sgc.runtime.engine.http.calls.call_fields import take_fields
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Sampling, TextRun

LONG = {"model": "fake", "prompt": "a", "max_tokens": 4000, "ignore_eos": True}


def stats_of(engine: HttpEngine) -> pb.Stats:
    async def ask() -> pb.Stats:
        async with EngineBackend(engine.uri) as backend:
            return await backend.stats()

    return asyncio.run(ask())


def assert_nothing_is_held(engine: HttpEngine, n_expired: int) -> None:
    """The cancellation is in the step process before this question is."""
    stats = stats_of(engine)
    assert stats.running_requests == stats.waiting_requests == stats.in_flight_requests == 0
    assert stats.free_tokens + stats.evictable_tokens == stats.pool_tokens
    assert stats.expired_requests == n_expired


def test_it_is_told_and_nothing_of_it_is_held(http_engine: HttpEngine) -> None:
    n = stats_of(http_engine).expired_requests
    answer = http_engine.ask("/v1/completions", {**LONG, "timeout": 0.05})
    assert answer.status == 504
    assert answer.error["type"] == "timeout_error"
    assert answer.error["code"] == "deadline_exceeded"
    assert "0.05 s" in answer.error["message"]
    assert answer.headers["x-should-retry"] == "false"  # else OpenAI's client would
    assert_nothing_is_held(http_engine, n + 1)
    assert http_engine.ask("/v1/completions", LONG, X_Request_Timeout="0.05").status == 504
    assert_nothing_is_held(http_engine, n + 2)


def test_a_stream_gets_an_event(http_engine: HttpEngine) -> None:
    n = stats_of(http_engine).expired_requests
    answer = http_engine.ask("/v1/completions", {**LONG, "timeout": 0.5, "stream": True})
    assert answer.status == 200
    assert len(answer.events) > 1
    assert answer.events[-1]["error"]["code"] == "deadline_exceeded"
    assert_nothing_is_held(http_engine, n + 1)


@pytest.mark.parametrize("timeout", [0, -1, "5", True, 1e9])
@pytest.mark.parametrize("path", ["/v1/completions", "/generate"])
def test_a_time_that_is_none_is_named(http_engine: HttpEngine, path: str, timeout: Any) -> None:
    answer = http_engine.ask(path, {**LONG, "timeout": timeout})
    assert answer.status == 400
    assert answer.error["param"] == "timeout"


@pytest.mark.parametrize("timeout", ["soon", "0", "nan", "-3", "inf", "1_0", "1e999", "\xb2"])
def test_and_in_the_header(http_engine: HttpEngine, timeout: str) -> None:
    answer = http_engine.ask("/v1/completions", LONG, X_Request_Timeout=timeout)
    assert answer.status == 400
    assert answer.error["param"] == "X-Request-Timeout"


def test_what_openais_client_says_of_itself_is_no_deadline(http_engine: HttpEngine) -> None:
    with http_engine.client(timeout=100.0) as client:
        made = client.completions.create(model="fake", prompt="a", max_tokens=2)
    assert made.choices[0].text
    answer = http_engine.ask(
        "/v1/completions", {**LONG, "max_tokens": 300}, X_Stainless_Read_Timeout="0.001"
    )
    assert answer.status == 200


def test_our_client_gets_an_error_of_its_own(http_engine: HttpEngine) -> None:
    async def ask() -> None:
        async with EngineBackend(http_engine.uri, request_timeout_s=0.05) as backend:
            with pytest.raises(DeadlineExceeded, match=r"0\.05 s"):
                await backend.generate((TextRun("a"),), Sampling(max_tokens=4000, ignore_eos=True))

    n = stats_of(http_engine).expired_requests
    asyncio.run(ask())
    assert_nothing_is_held(http_engine, n + 1)


@pytest.mark.parametrize("path", ["/v1/completions", "/generate"])
def test_priorities_are_integers(http_engine: HttpEngine, path: str) -> None:
    fits = {"text": "a"} if path == "/generate" else {"model": "fake", "prompt": "a"}
    for priority in ("high", 1.5, True):
        answer = http_engine.ask(path, {**fits, "priority": priority})
        assert (answer.status, answer.error["param"]) == (400, "priority")
    for priority in (-5, 0, 7):
        assert http_engine.ask(path, {**fits, "priority": priority}).status == 200


@pytest.mark.parametrize(
    ("path", "body", "asked"),
    [
        ("/v1/completions", {"priority": -3}, 1),  # as in vLLM
        ("/v1/completions", {"priority": 3}, -1),
        ("/generate", {"priority": 3}, 1),  # as in SGLang
        ("/v1/responses", {"service_tier": "flex"}, -1),
        ("/v1/responses", {"service_tier": "priority"}, 1),
        ("/v1/responses", {"service_tier": "auto"}, None),
        ("/v1/programs/tip", {"priority": 3}, None),
    ],
)
def test_each_face_has_its_words_for_priority(path: str, body: Any, asked: int | None) -> None:
    caller = Caller()
    take_fields(body, caller, path)
    assert caller.priority == asked


def test_a_stream_s_own_deadline_ends_all_its_requests(http_engine: HttpEngine) -> None:
    sampling = pb.Sampling(max_tokens=4000, ignore_eos=True, top_p=1, top_k=-1)
    sampling.repetition_penalty = 1
    prompt = pb.Prompt(segments=[pb.Segment(text=pb.TextRun(text="a"))])
    requests = [
        pb.Request(id=i, prompt=prompt, generate=pb.Generate(sampling=sampling)) for i in range(4)
    ]
    with grpc.insecure_channel(http_engine.uri) as channel:
        call = EngineStub(channel).Session(iter([pb.ClientFrame(requests=requests)]), timeout=0.2)
        with pytest.raises(grpc.RpcError) as caught:
            list(call)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    def is_free() -> bool:
        stats = stats_of(http_engine)
        free = stats.free_tokens + stats.evictable_tokens == stats.pool_tokens
        return free and not stats.in_flight_requests

    until(is_free)
