"""A request leaves nothing that only the collector of cycles would free: that one runs seldom, and
until then a busy server's memory would rise by all that its requests had."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from typing import Any

import grpc
import pytest
from storms.conftest import TOKENS
from storms.harness import Server, bearer, channel
from storms.traffic import http_request

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.server.server import SERVICE

N, LATE = 20, 3  # requests, and how many calls of before may end among them
GENERATE = {"text": "a story", "sampling_params": {"max_new_tokens": 8, "ignore_eos": True}}
CHAT = {"model": "fake", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8}
LONG = {**CHAT, "stream": True, "max_tokens": 2000, "ignore_eos": True}


async def _http(server: Server, path: str, body: dict[str, Any], hangs_up: bool = False) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.http)
    writer.write(http_request(path, body, TOKENS[0]))
    found = await (reader.read(200) if hangs_up else reader.read())
    writer.transport.abort()
    return found[9:12]


async def _malformed(server: Server) -> None:
    async with channel(server.target) as opened:
        call = opened.stream_stream(f"/{SERVICE}/Session")(metadata=bearer(TOKENS[0]))
        await call.write(b"\xff\xff\xff")
        with pytest.raises(grpc.aio.AioRpcError):
            await call.read()


async def _grpc(server: Server, text: str, hangs_up: bool = False) -> None:
    request = pb.Request(id=1)
    request.prompt.segments.add().text.text = text
    sampling = request.generate.sampling
    sampling.max_tokens, sampling.ignore_eos = 8, True
    sampling.top_p, sampling.top_k, sampling.repetition_penalty = 1, -1, 1
    async with server.stub() as stub:
        call = stub.Session(metadata=bearer(TOKENS[0]))
        await call.write(pb.ClientFrame(requests=[request]))
        await call.done_writing()
        if hangs_up:
            call.cancel()
        with pytest.raises(asyncio.CancelledError) if hangs_up else nullcontext():
            async for _ in call:
                pass


ASKED = {
    "answered": lambda server: _http(server, "/generate", GENERATE),
    "streamed": lambda server: _http(server, "/v1/chat/completions", {**CHAT, "stream": True}),
    "refused": lambda server: _http(server, "/v1/chat/completions", {**CHAT, "unknown": 1}),
    "refused by the engine": lambda server: _http(server, "/generate", {"text": "a " * 5000}),
    "no such path": lambda server: _http(server, "/nowhere", CHAT),
    "gone": lambda server: _http(server, "/v1/chat/completions", LONG, hangs_up=True),
    "gRPC": lambda server: _grpc(server, "a story"),
    "gRPC, refused": lambda server: _grpc(server, "a " * 5000),
    "gRPC, malformed": _malformed,
    "gRPC, gone": lambda server: _grpc(server, "a story", hangs_up=True),
}

# Objects that libraries leave in a cycle for each: asyncio's transport of a connection, aiohttp's
# error, gRPC's look-up of a method and its end of a call that is refused.
LIBRARIES = dict.fromkeys(ASKED, 6) | {"no such path": 12, "gRPC, malformed": 40}


def _settle(server: Server) -> None:
    """Collects until nothing is found: calls of other tests may end late, and leave more."""
    for _ in range(100):
        if not server.garbage():
            return
        time.sleep(0.05)


def test_a_request_leaves_no_cycles(storm_server: Server) -> None:
    async def ask_all(name: str, n: int) -> None:
        for _ in range(n):
            await ASKED[name](storm_server)
        await storm_server.idle()

    wrong = {}
    try:
        for name, most in LIBRARIES.items():
            asyncio.run(ask_all(name, 2))
            _settle(storm_server)
            asyncio.run(ask_all(name, N))
            found = storm_server.garbage()
            if any(kind.startswith("sgc.") for kind in found) or found.total() > (N + LATE) * most:
                wrong[name] = found.most_common(8)
    finally:
        storm_server.objects()  # it collects again
    assert not wrong
