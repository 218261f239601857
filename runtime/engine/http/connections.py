"""The bounds on HTTP connections: their number, and how long a client may send nothing.

aiohttp has neither bound. Each connection takes a file descriptor and a parser, so a client that
opens many and sends nothing could exhaust the server. When the limit is reached, the server closes
the connection whose client it has waited for longest.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from aiohttp import web

from sgc.runtime.engine.process.descriptors import max_connections

IDLE_S = 30.0  # from connecting, or from the last reply, to the end of the next request's headers
SWEEP_S = 1.0
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"  # fmt: skip # noqa: E501

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Connections:
    """Makes the protocol of each connection, and closes those that have been idle for too long."""

    def __init__(self, idle_s: float = IDLE_S, most: int | None = None) -> None:
        self._idle_s = idle_s
        self._most = max_connections() if most is None else most
        self._server: web.Server | None = None
        self._waiting: dict[Any, float] = {}  # since when it waits for the client; oldest first
        self._closing: set[Any] = set()

    def attach(self, server: web.Server) -> None:
        self._server = server

    def protocol(self) -> asyncio.Protocol:
        """The protocol factory for `loop.create_server`."""
        assert self._server is not None
        open_ones = self._server.connections
        self._closing.intersection_update(open_ones)
        if len(open_ones) - len(self._closing) >= self._most and not self._close_one():
            return _Full()
        made: asyncio.Protocol = self._server()
        self._wait_for(made)
        return made

    @property
    def middleware(self) -> Any:
        @web.middleware
        async def busy(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._waiting.pop(request.protocol, None)
            try:
                return await handler(request)
            finally:
                self._wait_for(request.protocol)

        return busy

    @contextlib.contextmanager
    def receiving(self, request: web.Request) -> Iterator[None]:
        """Within this block the server waits for the rest of the client's request."""
        self._wait_for(request.protocol)
        yield
        self._waiting.pop(request.protocol, None)

    def _wait_for(self, protocol: Any) -> None:
        self._waiting.pop(protocol, None)
        self._waiting[protocol] = time.monotonic()

    def _close_one(self) -> bool:
        """Makes room for a connection; False if the server waits for no client."""
        oldest = next((each for each in self._waiting if each.transport is not None), None)
        if oldest is not None:
            self._close(oldest)
        return oldest is not None

    def _close(self, protocol: Any) -> None:
        """Closes the connection if it is still open."""
        del self._waiting[protocol]
        if protocol.transport is not None:
            self._closing.add(protocol)
            protocol.transport.abort()

    async def sweep(self) -> None:
        """Closes idle connections until cancelled."""
        while True:
            await asyncio.sleep(min(SWEEP_S, self._idle_s / 2))
            self._close_idle(time.monotonic())

    def _close_idle(self, now: float) -> None:
        for protocol, since in list(self._waiting.items()):
            is_gone = protocol.transport is None and now - since > SWEEP_S
            if is_gone or now - since > self._idle_s:
                self._close(protocol)


class _Full(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(_FULL)
        transport.close()
