"""Messages that are made from the descriptors of every gRPC method: random ones, valid ones that
were changed, values at their edges, unknown fields, huge repeated fields. Each gets a status, and
none of them is the server's fault.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import grpc
import grpc.aio
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from storms.harness import Server, channel
from storms.traffic import request_of

from sgc.proto import engine_pb2 as pb
from sgc.proto import programs_pb2

ANSWER_S = 60.0
MOST_DEPTH = 30
HUGE = 20_000
ENGINE, HEALTH = "sgc.engine.v1.Engine", "grpc.health.v1.Health"
PROGRAMS = "sgc.programs.v1.Programs"
METHODS: dict[str, tuple[str, type[Message]]] = {
    f"/{ENGINE}/Session": ("stream_stream", pb.ClientFrame),
    f"/{ENGINE}/GetInfo": ("unary_unary", pb.InfoRequest),
    f"/{ENGINE}/GetStats": ("unary_unary", pb.StatsRequest),
    f"/{ENGINE}/FlushCache": ("unary_unary", pb.FlushCacheRequest),
    f"/{HEALTH}/Check": ("unary_unary", health_pb2.HealthCheckRequest),
    f"/{HEALTH}/Watch": ("unary_stream", health_pb2.HealthCheckRequest),
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": (
        "stream_stream",
        reflection_pb2.ServerReflectionRequest,
    ),
    f"/{PROGRAMS}/ListPrograms": ("unary_unary", programs_pb2.ListProgramsRequest),
    f"/{PROGRAMS}/RunProgram": ("unary_stream", programs_pb2.ProgramCall),
}
"""How each method is called, and its message. Only a server with programs knows the last two."""
SESSION = f"/{ENGINE}/Session"
SHARE_OF_SESSION = 0.7
NUMBERS: dict[int, tuple[float, ...]] = {
    Field.TYPE_DOUBLE: (0.0, 1.0, -1.0, float("nan"), float("inf"), 1e-320, 1e308, 0.5),
    Field.TYPE_FLOAT: (0.0, 1.0, float("nan"), float("-inf")),
    Field.TYPE_INT32: (0, 1, -1, 2**31 - 1, -(2**31)),
    Field.TYPE_SINT32: (0, 1, -1, 2**31 - 1, -(2**31)),
    Field.TYPE_SINT64: (0, 1, -1, 2**63 - 1, -(2**63)),
    Field.TYPE_SFIXED32: (0, -(2**31)),
    Field.TYPE_SFIXED64: (0, -(2**63)),
    Field.TYPE_INT64: (0, 1, -1, 2**63 - 1, -(2**63)),
    Field.TYPE_UINT32: (0, 1, 7, 600, 2**32 - 1),
    Field.TYPE_UINT64: (0, 1, 7, 2**64 - 1),
    Field.TYPE_FIXED64: (0, 1, 2**64 - 1),
    Field.TYPE_FIXED32: (0, 2**32 - 1),
    Field.TYPE_ENUM: (0, 1, 99),
}
TEXTS = ("", "a", "the fox", "\0", "é" * 50, "🙂", "<|im_start|>", "(", "[a-z]+", "{}", '{"a": 1}')
BYTES = (b"", b"\0", b"\xff" * 8, b"x" * 64, b"x" * 65)
FAULTS = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED}


# Messages.


def filled(kind: Callable[[], Message], rng: random.Random, depth: int = 0) -> Message:
    """A message of random fields."""
    made = kind()
    for field in made.DESCRIPTOR.fields:
        if rng.random() < (0.5 if depth < 4 else 0.25) and depth < MOST_DEPTH:
            _fill(made, field, rng, depth)
    return made


def _fill(made: Message, field: Field, rng: random.Random, depth: int) -> None:
    is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
    if is_map:
        return
    if not field.is_repeated:
        if field.message_type is None:
            setattr(made, field.name, _scalar(field, rng))
        else:
            inner = filled(field.message_type._concrete_class, rng, depth + 1)
            getattr(made, field.name).CopyFrom(inner)
        return
    many = getattr(made, field.name)
    if field.message_type is None:
        n = HUGE if rng.random() < 0.01 else rng.randrange(4)
        value = _scalar(field, rng)
        many.extend([value] * n if n == HUGE else [_scalar(field, rng) for _ in range(n)])
    else:
        inner = [filled(field.message_type._concrete_class, rng, depth + 1) for _ in range(2)]
        many.extend(inner[: rng.randrange(3)])
        if many and rng.random() < 0.01:
            many.extend([many[0]] * rng.choice((100, 2000)))


def _scalar(field: Field, rng: random.Random) -> Any:
    if field.type == Field.TYPE_STRING:
        text = rng.choice(TEXTS)
        return text * rng.choice((1, 1, 1, 500)) if rng.random() < 0.2 else text
    if field.type == Field.TYPE_BYTES:
        return rng.choice(BYTES)
    if field.type == Field.TYPE_BOOL:
        return rng.random() < 0.5
    return rng.choice(NUMBERS[field.type])


def valid(kind: type[Message], rng: random.Random) -> Message:
    if kind is pb.ClientFrame:
        n = rng.randrange(1, 4)
        return pb.ClientFrame(requests=[request_of(i, rng, 8) for i in range(n)])
    if kind is health_pb2.HealthCheckRequest:
        return health_pb2.HealthCheckRequest(service=rng.choice(("", ENGINE, "nobody")))
    if kind is reflection_pb2.ServerReflectionRequest:
        return reflection_pb2.ServerReflectionRequest(file_containing_symbol=ENGINE)
    if kind is programs_pb2.ProgramCall:
        name = rng.choice(("tip", "tip", "none"))
        return programs_pb2.ProgramCall(program=name, arguments='{"topic": "x"}', stream=True)
    return kind()


def altered(data: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, taken out, put in or doubled."""
    found = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(found) + 1)
        how = rng.randrange(4)
        if how == 0 and at < len(found):
            found[at] = rng.randrange(256)
        elif how == 1:
            del found[at : at + rng.randint(1, 8)]
        elif how == 2:
            found[at:at] = rng.randbytes(rng.randint(1, 8))
        else:
            found[at:at] = found[at : at + rng.randint(1, 40)]
    return bytes(found)


def unknown_field(rng: random.Random) -> bytes:
    """Field 1,000 or so, as a number or as bytes."""
    number = rng.randint(900, 2000)
    if rng.random() < 0.5:
        return _varint(number << 3) + _varint(rng.getrandbits(63))
    data = rng.randbytes(rng.choice((0, 3, 100_000)))
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def message(kind: type[Message], rng: random.Random) -> bytes:
    how = rng.randrange(5)
    if how == 0:
        return rng.randbytes(rng.choice((1, 5, 50, 2000)))
    if how == 1:
        return altered(valid(kind, rng).SerializeToString(), rng)
    if how == 2:
        return valid(kind, rng).SerializeToString() + unknown_field(rng)
    data = filled(kind, rng).SerializeToString()
    return altered(data, rng) if how == 3 else data


# Calls.


async def fuzz(server: Server, n: int, n_clients: int = 24, seed: int = 1) -> dict[str, Any]:
    statuses: dict[str, Counter[str]] = {name: Counter() for name in METHODS}
    replies: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    left, start = n, time.monotonic()

    async def client(number: int) -> None:
        nonlocal left
        rng = random.Random(seed * 1000 + number)
        async with channel(server.target) as opened:
            while left > 0:
                left -= 1
                is_session = rng.random() < SHARE_OF_SESSION
                name = SESSION if is_session else rng.choice(list(METHODS))
                how, kind = METHODS[name]
                data = message(kind, rng)
                call = getattr(opened, how)(name)
                code = await _called(call, how, data, server, name, replies)
                statuses[name][code.name] += 1
                if code in FAULTS:
                    wrong[f"{name} {code.name}: {data[:60].hex()}"] += 1

    await asyncio.gather(*(client(i) for i in range(n_clients)))
    took_s = time.monotonic() - start
    idle_s = await server.idle()
    stats = await server.flushed()
    return {
        "messages": n,
        "seconds": round(took_s, 1),
        "statuses": {name: dict(each) for name, each in statuses.items()},
        "replies": dict(replies),
        "wrong": dict(wrong.most_common(20)),
        "idle_after_s": round(idle_s, 3),
        "tokens_not_freed": stats.pool_tokens - stats.free_tokens,
        "is_running": server.engine.is_running,
    }


async def _called(
    call: Any, how: str, data: bytes, server: Server, name: str, replies: Counter[str]
) -> grpc.StatusCode:
    """The status of a call with one message."""
    try:
        if how == "unary_unary":
            await call(data, metadata=server.metadata, timeout=ANSWER_S)
            return grpc.StatusCode.OK
        if how == "unary_stream":
            answer = call(data, metadata=server.metadata, timeout=ANSWER_S)
            await answer.read()
            answer.cancel()
            return grpc.StatusCode.OK
        answer = call(metadata=server.metadata, timeout=ANSWER_S)
        await answer.write(data)
        await answer.done_writing()
        async for frame in answer:
            if name == SESSION:
                replies.update(_kinds(frame))
        return await answer.code()
    except grpc.aio.AioRpcError as error:
        return error.code()
    except asyncio.InvalidStateError:  # the call ended before its message was written
        return await answer.code()


def _kinds(data: bytes) -> list[str]:
    found = []
    for reply in pb.ServerFrame.FromString(data).replies:
        is_error = reply.HasField("error")
        kind = pb.ErrorCode.Name(reply.error.code) if is_error else reply.WhichOneof("kind")
        found.append(kind)
        if is_error and reply.error.code == pb.ERROR_CODE_INTERNAL:
            found[-1] += f": {reply.error.message[:160]}"
    return found


def problems(found: Mapping[str, Any]) -> list[str]:
    said = [f"{n} x {what}" for what, n in found["wrong"].items()]
    said += [f"{n} x {what}" for what, n in found["replies"].items() if "INTERNAL" in what]
    if not found["is_running"] or found["tokens_not_freed"]:
        said.append(f"the server runs: {found['is_running']}, held: {found['tokens_not_freed']}")
    return said
