"""Attacks beside those of `benches/engine/attacks.py`: readers that stall, resets, messages of
64 MB, garbage on every port, headers that dribble, wrong tokens.

Each runs until it is stopped, at a rate that does not depend on replies.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import grpc
import grpc.aio
from attacks import ATTACKS as KNOWN
from attacks import HOLD_S, SESSION, Target, at_rate, request, send
from storms.harness import bearer, channel
from storms.isolation import generation, prompt_of
from storms.traffic import close

from sgc.proto import engine_pb2 as pb

N_STALLED = 200
N_TOKENS = 200  # of a reply that nobody reads
SETTLE_S = {"stalled readers": 40.0}  # others: 2
RESETS_A_SECOND = 3000
LARGE = 64_000_000
GARBAGE = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x11" * 500,  # TLS hello
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 200,
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    b"POST /generate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{",
    b"POST /generate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n{}",
    b"POST /generate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"\0" * 1000,
    b"\r\n" * 500,
    b"GET /" + b"a" * 20_000,
)


async def stalled_readers(target: Target) -> None:
    """200 clients whose replies do not fit the buffers on the way, and who read nothing of them,
    over both faces. The engine has computed them after a while, and then only holds them."""
    params = {"max_new_tokens": N_TOKENS, "ignore_eos": True}
    body = request(json.dumps({"text": "x", "stream": True, "sampling_params": params}).encode())
    hold_s = SETTLE_S["stalled readers"] + 120

    async def over_http() -> None:
        with contextlib.suppress(OSError):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setblocking(False)
            await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", target.http))
            await asyncio.get_running_loop().sock_sendall(connection, body)
            await asyncio.sleep(hold_s)
            connection.close()

    async def over_grpc() -> None:
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
            async with channel(f"127.0.0.1:{target.grpc}") as opened:
                call = opened.stream_stream(SESSION)()
                asked = generation(1, prompt_of("x"))
                asked.generate.stream = True
                asked.generate.sampling.max_tokens = N_TOKENS
                asked.generate.sampling.ignore_eos = True
                asked.generate.sampling.logprobs.top = 30
                asked.generate.sampling.logprobs.text = True
                await call.write(pb.ClientFrame(requests=[asked]).SerializeToString())
                await asyncio.sleep(hold_s)
                call.cancel()

    half = range(N_STALLED // 2)
    await asyncio.gather(*(over_http() for _ in half), *(over_grpc() for _ in half))


async def resets(target: Target) -> None:
    ports = (target.http, target.grpc)
    said = (b"", b"GET / HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

    async def reset(n: int) -> None:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", ports[n % 2])
            writer.write(said[n % 3])
            close(writer, with_reset=True)

    await at_rate(RESETS_A_SECOND, reset)


async def messages_of_64_mb(target: Target) -> None:
    declared = request(b"{", LARGE)
    head = b"POST /generate HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    piece = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    frame = b"\x12\x80\x80\x80\x20" + b"\0" * LARGE
    options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]

    async def chunked() -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(HOLD_S):
                _, writer = await asyncio.open_connection("127.0.0.1", target.http)
                writer.write(head)
                for _ in range(LARGE >> 20):
                    writer.write(piece)
                    await writer.drain()
                close(writer, with_reset=False)

    async def one(n: int) -> None:
        if n % 3 == 0:
            await send(target, declared)
        elif n % 3 == 1:
            await chunked()
        else:
            with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
                async with grpc.aio.insecure_channel(f"127.0.0.1:{target.grpc}", options) as opened:
                    call = opened.stream_stream(SESSION)(timeout=HOLD_S)
                    await call.write(frame)
                    await call.read()

    await at_rate(2, one)


async def garbage(target: Target) -> None:
    rng = random.Random(1)

    async def one(n: int) -> None:
        port = (target.http, target.grpc)[n % 2]
        data = os.urandom(rng.randrange(2000)) if n % 3 == 0 else rng.choice(GARBAGE)
        await send(Target(port, port), data, hold_s=1.0)

    async def protobuf(n: int) -> None:
        async with channel(f"127.0.0.1:{target.grpc}") as opened:
            with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
                call = opened.stream_stream(SESSION)(timeout=1.0)
                await call.write(os.urandom(200))
                await call.read()

    await asyncio.gather(at_rate(100, one), at_rate(20, protobuf))


async def slow_headers(target: Target) -> None:
    head = b"POST /generate HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"a" * 400

    async def one(n: int) -> None:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", target.http)
            for at in range(len(head)):
                writer.write(head[at : at + 1])
                await asyncio.sleep(0.5)

    await at_rate(40, one)


async def wrong_tokens(target: Target) -> None:
    data = b"POST /generate HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer no\r\n"
    data += b"Connection: close\r\nContent-Length: 2\r\n\r\n{}"

    async def http(n: int) -> None:
        await send(target, data, hold_s=1.0)

    async with channel(f"127.0.0.1:{target.grpc}") as opened:

        async def calls(n: int) -> None:
            with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
                call = opened.stream_stream(SESSION)(metadata=bearer("no"), timeout=1.0)
                await call.read()

        await asyncio.gather(at_rate(100, http), at_rate(100, calls))


ATTACKS: dict[str, Callable[[Target], Coroutine[Any, Any, None]]] = {
    "stalled readers": stalled_readers,
    "resets": resets,
    "64 MB messages": messages_of_64_mb,
    "garbage": garbage,
    "slow headers": slow_headers,
    "slow uploads": KNOWN["dribbling uploads"],  # type: ignore[dict-item]
    "wrong tokens": wrong_tokens,
}
