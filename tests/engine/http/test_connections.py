"""Connections and bodies that are silent, slow, large or too many give way to others."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from waiting import BOUND_S

from sgc.runtime.engine.http import body, sse
from sgc.runtime.engine.http.connections import Connections
from sgc.runtime.engine.http.site import errors_as_json


@asynccontextmanager
async def small_server(
    handler: Any, idle_s: float = 60.0, most: int = 100, connections: Connections | None = None
) -> AsyncIterator[tuple[str, int]]:
    """A server that has but one path, `/`."""
    connections = connections or Connections(idle_s, most)
    app = web.Application(middlewares=[connections.middleware, errors_as_json])
    app.router.add_route("*", "/", handler)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    assert runner.server is not None
    connections.attach(runner.server)
    sweeping = asyncio.create_task(connections.sweep())
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connections.protocol, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[:2]
    finally:
        sweeping.cancel()
        server.close()
        await runner.cleanup()


async def answered(address: tuple[str, int], data: bytes) -> bytes:
    """All that comes until the server hangs up."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(), BOUND_S)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def ok(request: web.Request) -> web.Response:
    await asyncio.sleep(0.5)
    return web.Response(text="done")


GET = b"GET / HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.sweep
@pytest.mark.parametrize("said", [b"", b"GET / HT", GET, GET + b"\r\n" + GET])
def test_who_keeps_silent_is_hung_up_on(said: bytes) -> None:
    async def main() -> None:
        async with small_server(ok, idle_s=0.3) as address:
            found = await answered(address, said)
            assert (b"done" in found) == (GET + b"\r\n" in said)  # a slow answer is no silence

    asyncio.run(main())


def test_headers_that_dribble_are_hung_up_on() -> None:
    async def main() -> None:
        async with small_server(ok, idle_s=0.3) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(GET)
            deadline = time.monotonic() + BOUND_S
            while not reader.at_eof() and reader.exception() is None:
                assert time.monotonic() < deadline
                writer.write(b"X: y\r\n")
                await asyncio.sleep(0.05)
            writer.close()

    asyncio.run(main())


def test_one_connection_too_many_is_told_to_retry_where_all_are_being_served() -> None:
    async def never(request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    async def main() -> None:
        async with small_server(never, most=2) as address:
            held = [await asyncio.open_connection(*address) for _ in range(2)]
            for _, writer in held:
                writer.write(GET + b"\r\n")
            await asyncio.sleep(0.05)
            found = await answered(address, GET + b"\r\n")
            assert found.startswith(b"HTTP/1.1 503 ")
            assert b"Retry-After: 1" in found
            for _, writer in held:
                writer.close()

    asyncio.run(main())


HALF_A_BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"


@pytest.mark.parametrize("sent", [b"", GET, HALF_A_BODY], ids=["nothing", "a head", "a body"])
def test_whoever_sends_half_a_request_gives_way(sent: bytes) -> None:
    """As many as there are places, and then those who ask: all of them are answered."""

    async def main() -> None:
        async with reading_server(most=8) as address:
            held = [await asyncio.open_connection(*address) for _ in range(8)]
            for _, writer in held:
                writer.write(sent)
            await asyncio.sleep(0.05)
            whole = (
                b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
            )
            for _ in range(20):
                assert (await answered(address, whole)).startswith(b"HTTP/1.1 200 ")
            for _, writer in held:
                writer.close()

    asyncio.run(main())


def test_who_does_not_read_a_stream_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "WRITE_TIMEOUT_S", 0.2)
    is_over = threading.Event()

    async def events() -> AsyncGenerator[str]:
        try:
            while True:
                yield "x" * 100_000
        finally:
            is_over.set()

    async def stream(request: web.Request) -> web.StreamResponse:
        made = events()
        try:
            return await sse.respond(request, made)
        finally:
            await made.aclose()

    async def main() -> None:
        async with small_server(stream) as address:
            _, writer = await asyncio.open_connection(*address, limit=1024)
            writer.write(GET + b"\r\n")
            assert await asyncio.to_thread(is_over.wait, BOUND_S)
            writer.close()

    asyncio.run(main())


@asynccontextmanager
async def reading_server(
    most: int = 100,
    max_reading_bytes: int = body.MAX_READING_BYTES,
    max_string_bytes: int | None = None,
    idle_s: float = 1.0,
) -> AsyncIterator[tuple[str, int]]:
    """A server that reads JSON, and says 200."""
    connections = Connections(idle_s, most)
    reader = body.BodyReader(connections, max_reading_bytes, max_string_bytes)

    async def read(request: web.Request) -> web.Response:
        return web.json_response(await reader.read(request))

    async with small_server(read, connections=connections) as address:
        yield address


def test_a_body_that_does_not_come_is_a_408(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "READ_TIMEOUT_S", 0.2)

    async def main() -> None:
        async with reading_server(idle_s=0.3) as address:  # then it hangs up
            assert (await answered(address, HALF_A_BODY)).startswith(b"HTTP/1.1 408 ")

    asyncio.run(main())


def test_a_body_must_come_at_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that dribbles is given up; one that takes as long and comes at the pace is taken."""
    monkeypatch.setattr(body, "GRACE_S", 0.1)
    monkeypatch.setattr(body, "PACE_BYTES_PER_S", 10_000)

    async def send(address: tuple[str, int], n_bytes: int) -> bytes:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        reader, writer = await asyncio.open_connection(*address)
        writer.write(head % (n_bytes * 8))
        parts = [b"{" + b" " * (n_bytes - 1), *[b" " * n_bytes] * 6, b" " * (n_bytes - 1) + b"}"]
        for part in parts:
            writer.write(part)
            await asyncio.sleep(0.05)
        found = await reader.read()
        writer.close()
        return found

    async def main() -> None:
        async with reading_server() as address:
            assert (await send(address, 10)).startswith(b"HTTP/1.1 408 ")
            assert (await send(address, 2000)).startswith(b"HTTP/1.1 200 ")

    asyncio.run(main())


@pytest.mark.slow
def test_slow_bodies_hold_up_no_large_one() -> None:
    """However many large ones have been begun; the oldest gives way where they hold too much."""
    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    large = b"{" + b" " * 300_000 + b"}"

    async def main() -> None:
        async with reading_server(max_reading_bytes=1_000_000) as address:
            held = [await asyncio.open_connection(*address) for _ in range(12)]
            for _, writer in held:
                writer.write(head % 400_000 + b" " * 100_000)
            for _ in range(3):
                found = await answered(address, head % len(large) + large)
                assert found.startswith(b"HTTP/1.1 200 ")
            assert (await asyncio.wait_for(held[0][0].read(), 5)).startswith(b"HTTP/1.1 503 ")
            for _, writer in held:
                writer.close()

    asyncio.run(main())


def test_large_bodies_that_come_at_once_are_all_read() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    large = b'{"a": "' + b"x" * 2_000_000 + b'"}'

    async def main() -> None:
        async with reading_server() as address:
            work = [answered(address, head % len(large) + large) for _ in range(6)]
            for found in await asyncio.gather(*work):
                assert found.startswith(b"HTTP/1.1 200 ")

    asyncio.run(main())


def test_a_string_that_no_prompt_holds_is_refused_as_it_comes() -> None:
    """Before the body has come: nothing is made of it, and nobody waits for that."""
    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    fits = b'{"a": ["' + b'", "'.join([b"x" * 190_000] * 9) + b'"]}'

    async def main() -> None:
        async with reading_server(max_string_bytes=200_000) as address:
            found = await answered(address, head % 10_000_000 + b'{"a": "' + b"x" * 600_000)
            assert found.startswith(b"HTTP/1.1 413 ")
            assert b"context_length_exceeded" in found
            assert (await answered(address, head % len(fits) + fits)).startswith(b"HTTP/1.1 200 ")

    asyncio.run(main())


@pytest.mark.parametrize(
    "value", [{"a": [1, 2, {"b": "x,y[{\\"}]}, ['",', "\\\\", 'a\\\\"b,', ","], {}, "[[[,,,"]
)
@pytest.mark.parametrize("slice_bytes", [1, 2, 3, 1000])
def test_values_are_counted_without_reading_them(
    value: object, slice_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "_SLICE_BYTES", slice_bytes)
    data = json.dumps(value).encode()
    texts = re.compile(rb'"(?:[^"\\]|\\.)*"')
    assert body.n_values(data) == 1 + sum(c in b",:[{" for c in texts.sub(b"", data))
