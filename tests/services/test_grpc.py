"""Programs over gRPC: one call for a whole run."""

from __future__ import annotations

import json
from collections.abc import Iterator

import grpc
import pytest
from waiting import BOUND_S, until

from sgc.proto import programs_pb2 as pb
from sgc.proto.programs_pb2_grpc import ProgramsStub


@pytest.fixture(scope="module")
def stub(server) -> Iterator[ProgramsStub]:
    with grpc.insecure_channel(server.uri) as channel:
        yield ProgramsStub(channel)


def call(program: str, stream: bool = False, options: str = "", **arguments) -> pb.ProgramCall:
    given = json.dumps(arguments)
    return pb.ProgramCall(program=program, arguments=given, options=options, stream=stream)


def test_programs_are_listed(stub):
    found = stub.ListPrograms(pb.ListProgramsRequest()).programs[0]
    assert found.name == "tip"
    assert [(p.name, p.type, p.required) for p in found.parameters] == [
        ("topic", "text", True), ("n", "int", False),
    ]  # fmt: skip


def test_a_run_is_the_one_that_http_gives(server, stub):
    (event,) = stub.RunProgram(call("tip", options='{"seed": 9}', topic="tea"))
    over_http = server.ask("/v1/programs/tip", {"arguments": {"topic": "tea"}, "seed": 9}).json
    found = json.loads(event.result)
    for name in ("return", "text", "variables", "streams", "seed"):
        assert found[name] == over_http[name]


def test_texts_come_before_the_result_if_they_are_asked_for(stub):
    *texts, last = stub.RunProgram(call("tip", True, '{"seed": 9}', topic="tea"))
    main = "".join(event.text.text for event in texts if event.text.stream == "tip")
    assert main == json.loads(last.result)["text"]
    assert any(event.text.is_generated for event in texts)


def test_a_program_that_has_effects_is_not_run_for_who_may_ask_twice(stub):
    asked = {"metadata": [("sgc-effects", "refuse")]}
    assert len(list(stub.RunProgram(call("tip", topic="tea"), **asked))) == 1
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.RunProgram(call("loud", topic="tea"), **asked))
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert dict(caught.value.trailing_metadata())["sgc-begun"] == "no"
    assert len(list(stub.RunProgram(call("loud", topic="tea")))) == 1


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        (call("tap"), "NOT_FOUND", "this server has tip"),
        (call("tip"), "INVALID_ARGUMENT", "missing argument 'topic'"),
        (pb.ProgramCall(program="tip", arguments="[1]"), "INVALID_ARGUMENT", "JSON object"),
        (pb.ProgramCall(program="tip", arguments="{"), "INVALID_ARGUMENT", "is not JSON"),
        (pb.ProgramCall(program="tip", arguments="[" * 10**5), "INVALID_ARGUMENT", "arguments"),
        (call("tip", options='{"tools": 1}', topic="a"), "INVALID_ARGUMENT", "is no option"),
        (call("tip", options='{"top_p": 7}', topic="a"), "INVALID_ARGUMENT", "top_p"),
        (call("fails", topic="a"), "UNKNOWN", "it is never empty"),
        (call("odd", topic="a number"), "UNKNOWN", "the result cannot be written as JSON"),
        (call("odd", topic="a key"), "UNKNOWN", "the result cannot be written as JSON"),
        (call("odd", topic="half a pair"), "UNKNOWN", "the result cannot be written as JSON"),
        (call("endless", topic="a " * 40_000), "INVALID_ARGUMENT", "tokens"),
    ],
)  # fmt: skip
def test_errors_have_a_status_each(stub, asked, code, words):
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.RunProgram(asked, timeout=30))
    assert caught.value.code().name == code
    assert words in caught.value.details()


def test_a_call_that_is_cancelled_ends_its_run(server, stub):
    calls = [stub.RunProgram(call("endless", True, topic="a")) for _ in range(2)]
    for each in calls:
        next(iter(each))
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.RunProgram(call("tip", topic="tea")))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert dict(caught.value.trailing_metadata())["sgc-begun"] == "no"
    for each in calls:
        each.cancel()
    until(lambda: server.ask("/v1/programs/tip", {"arguments": {"topic": "tea"}}).status == 200)


def test_a_client_s_retry_policy_asks_again_when_it_is_told_to(server):
    policy = {"maxAttempts": 5, "initialBackoff": "9s", "maxBackoff": "9s", "backoffMultiplier": 1,
              "retryableStatusCodes": ["RESOURCE_EXHAUSTED", "UNKNOWN"]}  # fmt: skip
    every = {"name": [{}], "retryPolicy": policy}
    options = [("grpc.service_config", json.dumps({"methodConfig": [every]}))]
    with grpc.insecure_channel(server.uri, options=options) as channel:
        stub = ProgramsStub(channel)
        calls = [stub.RunProgram(call("tip", topic="a"), timeout=BOUND_S) for _ in range(4)]
        assert [len(list(each)) for each in calls] == [1, 1, 1, 1]
        with pytest.raises(grpc.RpcError) as caught:  # it had begun: at once, and once
            list(stub.RunProgram(call("fails", topic="a"), timeout=5))
        assert caught.value.code() is grpc.StatusCode.UNKNOWN


def test_a_burst_on_one_connection_is_answered_or_told_when_to_ask_again(server):
    """Also if the client reads one answer after another."""
    with grpc.insecure_channel(server.uri, options=[("burst", 1)]) as channel:
        stub, n_answers, refused = ProgramsStub(channel), 0, []
        for each in [stub.RunProgram(call("tip", topic="a"), timeout=BOUND_S) for _ in range(200)]:
            try:
                (event,) = each
                n_answers += json.loads(event.result)["object"] == "program.run"
            except grpc.RpcError as error:
                refused.append((error.code().name, *sorted(error.trailing_metadata())))
    assert n_answers == 200 - len(refused)
    for code, (pushback, in_ms), begun in refused:
        assert (code, pushback) == ("RESOURCE_EXHAUSTED", "grpc-retry-pushback-ms")
        assert 0 < int(in_ms) < 60_000
        assert begun == ("sgc-begun", "no")
    assert n_answers >= 2


def test_a_call_s_deadline_ends_the_run(server, stub):
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.RunProgram(call("tip", topic="tea"), timeout=1e-3))
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
