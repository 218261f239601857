"""The bounds on HTTP connections: so many, and none that keeps silent or dribbles what it asks.

aiohttp has neither bound. Each connection is a file descriptor and a parser, so that a client
that opens many and sends nothing would use the server up. Where all places are taken, the one for
whose client the server has waited longest gives way.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from aiohttp import web

MAX_CONNECTIONS = 512
IDLE_S = 30.0  # from connecting, or from the last reply, to the end of the next request's headers
SWEEP_S = 1.0
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"  # fmt: skip # noqa: E501

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Connections:
    """Makes the protocol of each connection, and closes those that have been idle for too long."""

    def __init__(self, idle_s: float = IDLE_S, most: int = MAX_CONNECTIONS) -> None:
        self._idle_s = idle_s
        self._most = most
        self._server: web.Server | None = None
        self._waiting: dict[Any, float] = {}  # for whose clients it waits, since when; oldest first
        self._closing: set[Any] = set()

    def attach(self, server: web.Server) -> None:
        self._server = server

    def protocol(self) -> asyncio.Protocol:
        """For `loop.create_server`."""
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
        """The server waits for the client meanwhile, for the rest of what it asks."""
        self._wait_for(request.protocol)
        yield
        self._waiting.pop(request.protocol, None)

    def _wait_for(self, protocol: Any) -> None:
        self._waiting.pop(protocol, None)
        self._waiting[protocol] = time.monotonic()

    def _close_one(self) -> bool:
        """Makes room for a connection; False where every client waits for the server."""
        oldest = next((each for each in self._waiting if each.transport is not None), None)
        if oldest is not None:
            self._close(oldest)
        return oldest is not None

    def _close(self, protocol: Any) -> None:
        """Hangs up, if that is still to be done."""
        del self._waiting[protocol]
        if protocol.transport is not None:
            self._closing.add(protocol)
            protocol.transport.abort()

    async def sweep(self) -> None:
        """Closes what is idle, until it is cancelled."""
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
