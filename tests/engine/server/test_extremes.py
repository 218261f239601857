"""Every number that a client can put into a request, at its extremes, beside innocent requests:
it ends well or with a typed refusal, the innocents' replies are as ever, the engine goes on.

The numbers are found in the protocol itself, so one that is added is tried, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from sgc.proto import engine_pb2 as pb
from sgc.proto.engine_pb2_grpc import EngineStub
from sgc.runtime.engine.launch import EmbeddedEngine

FLOATS = (0.0, -0.0, 5e-324, -5e-324, 1e-320, 2.3e-308, 1e-45, 1e-38, 1e-5, 1.0, 2.0, 3.5e38,
          1.7e308, -1.7e308, float("inf"), float("-inf"), float("nan"))  # fmt: skip
WHOLE = (0, 1, 2, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**63,
         2**64 - 1, -1, -2, -(2**31), -(2**63))  # fmt: skip
Kind = FieldDescriptor
BITS = {
    Kind.TYPE_UINT32: (0, 2**32), Kind.TYPE_UINT64: (0, 2**64), Kind.TYPE_FIXED64: (0, 2**64),
    Kind.TYPE_INT32: (-(2**31), 2**31), Kind.TYPE_INT64: (-(2**63), 2**63),
}  # fmt: skip
TYPED = {
    pb.ERROR_CODE_INVALID_ARGUMENT,
    pb.ERROR_CODE_CONTEXT_EXCEEDED,
    pb.ERROR_CODE_RESOURCE_EXHAUSTED,
    pb.ERROR_CODE_DEADLINE_EXCEEDED,
}
N_INNOCENTS = 3
Path = tuple[FieldDescriptor, ...]


def numbers_of(message: Descriptor, before: Path = ()) -> Iterator[Path]:
    """The way to each number in a message and what it holds."""
    for field in message.fields:
        if field.type == Kind.TYPE_MESSAGE:
            if any(field.message_type is each.message_type for each in before):
                continue  # what joined parts hold is what prompts hold
            yield from numbers_of(field.message_type, (*before, field))
        elif field.type == Kind.TYPE_DOUBLE or field.type in BITS:
            yield (*before, field)


def values_of(field: FieldDescriptor) -> list[Any]:
    if field.type == Kind.TYPE_DOUBLE:
        return list(FLOATS)
    low, high = BITS[field.type]
    return [value for value in WHOLE if low <= value < high]


def set_at(message: Any, path: Path, value: Any) -> None:
    """Sets one number; what is repeated gets one entry more, others keep theirs."""
    field, *rest = path
    holder = getattr(message, field.name)
    if field.is_repeated:
        set_at(holder.add(), tuple(rest), value) if rest else holder.append(value)
    elif rest:
        set_at(holder, tuple(rest), value)
    else:
        setattr(message, field.name, value)


def prompt() -> pb.Prompt:
    run = pb.TextRun(text="Here are 2 concise tips for tea.\n1.")
    return pb.Prompt(segments=[pb.Segment(text=run)])


def generate(**options: Any) -> pb.Request:
    values = {"max_tokens": 8, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.1, "seed": 3}
    sampling = pb.Sampling(**{**values, **options})
    return pb.Request(prompt=prompt(), generate=pb.Generate(sampling=sampling))


def ordinary_for(path: Path) -> list[pb.Request]:
    """Good requests in which the number could be; those that draw, greedily and not."""
    names = {field.name for field in path}
    if "score" in names:
        return [pb.Request(prompt=prompt(), score=pb.Score(choices=[" a", " b"]))]
    if "commit" in names:
        return [pb.Request(prompt=prompt(), commit=pb.Commit())]
    return [generate(), generate(temperature=0.8)]


def odd_requests() -> list[pb.Request]:
    found = []
    for path in numbers_of(pb.Request.DESCRIPTOR):
        if path[0].name == "id":  # which tells the requests of a session apart
            continue
        for value in values_of(path[-1]):
            for request in ordinary_for(path):
                set_at(request, path, value)
                found.append(request)
    return found


def innocents() -> list[pb.Request]:
    return [
        generate(repetition_penalty=1.0),
        generate(temperature=0.9, frequency_penalty=0.5),
        pb.Request(prompt=prompt(), score=pb.Score(choices=[" Walk", " Go to bed"])),
    ]


Ask = Callable[[list[list[pb.Request]]], dict[int, pb.Reply]]


@pytest.fixture(scope="module")
def ask(engine: EmbeddedEngine) -> Iterator[Ask]:
    """Sends frames in one session; the final replies by id."""
    with grpc.insecure_channel(engine.uri.removeprefix("grpc+")) as channel:

        def send(frames: list[list[pb.Request]]) -> dict[int, pb.Reply]:
            messages = iter([pb.ClientFrame(requests=frame) for frame in frames])
            found: dict[int, pb.Reply] = {}
            for frame in EngineStub(channel).Session(messages, timeout=60):
                for reply in frame.replies:
                    assert reply.id not in found, "something was said after the end"
                    found[reply.id] = reply
            return found

        yield send


def said(reply: pb.Reply) -> tuple[Any, ...]:
    """What must not depend on what runs beside it."""
    if reply.HasField("scored"):
        return tuple(tuple(choice.logprobs) for choice in reply.scored.choices)
    return (reply.generated.text, tuple(reply.generated.ids), reply.generated.finish_reason)


def numbered(requests: list[pb.Request], first: int) -> list[pb.Request]:
    for i, request in enumerate(requests):
        request.id = first + i
    return requests


@pytest.mark.slow
def test_no_number_of_a_request_harms_another(ask: Ask) -> None:
    alone = ask([numbered(innocents(), 1)])
    right = [said(alone[i]) for i in range(1, 1 + N_INNOCENTS)]
    assert all(right)
    odd = odd_requests()
    assert len(odd) > 450
    size = 1 + N_INNOCENTS
    frames = [numbered([each, *innocents()], size * i) for i, each in enumerate(odd)]
    outcomes: dict[str, int] = {}
    for at in range(0, len(frames), 100):
        replies = ask(frames[at : at + 100])
        for odd_one, *others in frames[at : at + 100]:
            assert [said(replies[each.id]) for each in others] == right, odd_one
            reply = replies[odd_one.id]
            kind = reply.WhichOneof("kind")
            assert kind != "error" or reply.error.code in TYPED, (odd_one, reply)
            outcomes[kind] = outcomes.get(kind, 0) + 1
    assert outcomes["error"] > 100
    assert outcomes["generated"] > 100


@pytest.mark.parametrize("request_id", [0, 2**31, 2**63 - 1, 2**63, 2**64 - 1])
def test_any_id_will_do(ask: Ask, request_id: int) -> None:
    request = generate()
    request.id = request_id
    assert ask([[request]])[request_id].WhichOneof("kind") == "generated"
