"""The attacks of `hostile_clients.py`, and a port that discards all that is sent to it.

Each attack runs in a process of its own until it is stopped, at a rate that does not depend on
replies, so that the server and the discarding port receive the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import grpc
import grpc.aio

from sgc.proto import engine_pb2 as pb

SESSION = "/sgc.engine.v1.Engine/Session"
HOLD_S = 5.0  # that an attacker waits for a reply
MB = 1_000_000
SIZES = (15 * MB, 3 * MB, 3 * MB, 400_000, 400_000)  # by bytes, the last two could fit the context
ODD: list[dict[str, Any]] = [
    {"repetition_penalty": 1e-320},
    {"repetition_penalty": 1e-30, "frequency_penalty": -2, "presence_penalty": -2},
    {"temperature": 1e-320},
    {"temperature": 1e-44, "top_p": 1e-45},
    {"temperature": 99.9, "min_p": 1e-320},
    {"top_p": 5e-324, "top_k": 2**31 - 1},
    {"logit_bias": {str(i): 1000 for i in range(1000)}},
]


@dataclass(frozen=True)
class Target:
    """Ports on 127.0.0.1."""

    http: int
    grpc: int


Attack = Callable[[Target], Awaitable[None]]


def attack(pipe: Connection, name: str, target: Target) -> None:
    """The main function of a process that attacks: sends its name when it begins."""
    pipe.send(name)
    asyncio.run(_forever(ATTACKS[name], target))


async def _forever(work: Attack, target: Target) -> None:
    await work(target)


def discard(pipe: Connection) -> None:
    """The main function of a process with ports that read all data and never reply."""
    asyncio.run(_discarding(pipe))


async def _discarding(pipe: Connection) -> None:
    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while await reader.read(1 << 16):
                pass
        writer.close()

    async def swallow(messages: Any, context: Any) -> None:
        async for _ in messages:
            pass

    plain = await asyncio.start_server(read, "127.0.0.1", 0, backlog=1024)
    handler = grpc.stream_stream_rpc_method_handler(swallow)
    calls = grpc.aio.server(options=[("grpc.max_receive_message_length", 64 * MB)])
    service = grpc.method_handlers_generic_handler("sgc.engine.v1.Engine", {"Session": handler})
    calls.add_generic_rpc_handlers((service,))
    port = calls.add_insecure_port("127.0.0.1:0")
    await calls.start()
    pipe.send(Target(plain.sockets[0].getsockname()[1], port))
    await asyncio.Event().wait()


# HTTP.


def request(body: bytes, n_bytes: int | None = None) -> bytes:
    length = len(body) if n_bytes is None else n_bytes
    head = f"POST /generate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n"
    return head.encode() + body


async def send(target: Target, data: bytes, hold_s: float = HOLD_S) -> None:
    """Sends data over a new connection, and closes it after `hold_s` at the latest."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(hold_s):
            reader, writer = await asyncio.open_connection("127.0.0.1", target.http)
            try:
                writer.write(data)
                await writer.drain()
                while await reader.read(1 << 16):
                    pass
            finally:
                writer.transport.abort()


async def at_rate(rate: float, work: Callable[[int], Awaitable[None]]) -> None:
    """Starts `rate` tasks a second, forever; skips some while too many are running."""
    loop, tasks, n = asyncio.get_running_loop(), set(), 0
    start = loop.time()
    while True:
        if len(tasks) < 1000:
            task = asyncio.ensure_future(work(n))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        n += 1
        start = max(start, loop.time() - n / rate)
        await asyncio.sleep(max(0.0, start + n / rate - loop.time()))


def text_of(n_bytes: int) -> str:
    return "the quick brown fox 1234567890 " * (n_bytes // 31)


async def large_bodies(target: Target) -> None:
    bodies = [request(json.dumps({"text": text_of(size)}).encode()) for size in SIZES]
    await at_rate(5, lambda n: send(target, bodies[n % len(bodies)]))


async def many_values(target: Target) -> None:
    body = request(b'{"input_ids": [' + b"1," * (7 * MB) + b"1]}")
    await at_rate(2, lambda n: send(target, body))


async def silent_connections(target: Target) -> None:
    await at_rate(200, lambda n: send(target, b"", hold_s=10))


async def dribbling_uploads(target: Target) -> None:
    async def dribble(n: int) -> None:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", target.http)
            writer.write(request(b"{", 15 * MB))
            for _ in range(60):
                writer.write(b" " * 1000)
                await writer.drain()
                await asyncio.sleep(0.25)
            writer.transport.abort()

    await at_rate(20, dribble)


async def odd_numbers(target: Target) -> None:
    def body(n: int) -> bytes:
        params = {"max_new_tokens": 4, **ODD[n % len(ODD)]}
        return request(json.dumps({"text": f"Hello {n % 7}", "sampling_params": params}).encode())

    await at_rate(20, lambda n: send(target, body(n), hold_s=1))


# gRPC.


async def large_frames(target: Target) -> None:
    def frame(n_bytes: int) -> bytes:
        run = pb.Segment(text=pb.TextRun(text=text_of(n_bytes)))
        asked = pb.Request(id=1, prompt=pb.Prompt(segments=[run]), commit=pb.Commit())
        return pb.ClientFrame(requests=[asked]).SerializeToString()

    frames = [frame(size) for size in SIZES]
    options = [("grpc.max_send_message_length", 64 * MB), ("grpc.use_local_subchannel_pool", 1)]

    async def ask(n: int) -> None:
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
            async with grpc.aio.insecure_channel(f"127.0.0.1:{target.grpc}", options) as channel:
                call = channel.stream_stream(SESSION)(timeout=HOLD_S)
                await call.write(frames[n % len(frames)])
                await asyncio.sleep(HOLD_S / 2)
                call.cancel()

    await at_rate(5, ask)


async def silent_sessions(target: Target) -> None:
    """Opens 300 sessions at once, and 30 more a second, 30 on each connection."""
    options = [("grpc.use_local_subchannel_pool", 1)]

    async def hold(n_streams: int) -> None:
        with contextlib.suppress(grpc.RpcError):
            async with grpc.aio.insecure_channel(f"127.0.0.1:{target.grpc}", options) as channel:
                calls = [channel.stream_stream(SESSION)() for _ in range(n_streams)]
                await asyncio.sleep(20)
                for call in calls:
                    call.cancel()

    await asyncio.gather(*(hold(30) for _ in range(10)), at_rate(1, lambda n: hold(30)))


ATTACKS: dict[str, Attack] = {
    "large bodies": large_bodies,
    "large frames": large_frames,
    "many values": many_values,
    "silent connections": silent_connections,
    "silent sessions": silent_sessions,
    "dribbling uploads": dribbling_uploads,
    "odd numbers": odd_numbers,
}
