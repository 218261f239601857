"""The bounds on HTTP connections: so many, and none that keeps silent or dribbles its headers.

aiohttp has neither bound. Each connection is a file descriptor and a parser, so that a client
that opens many and sends nothing would use the server up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
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
        self._busy: set[Any] = set()
        self._since: dict[Any, float] = {}  # when an idle one was first, or became, idle

    def attach(self, server: web.Server) -> None:
        self._server = server

    def protocol(self) -> asyncio.Protocol:
        """For `loop.create_server`."""
        assert self._server is not None
        if len(self._server.connections) >= self._most:
            return _Full()
        made: asyncio.Protocol = self._server()
        return made

    @property
    def middleware(self) -> Any:
        @web.middleware
        async def busy(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._busy.add(request.protocol)
            try:
                return await handler(request)
            finally:
                self._busy.discard(request.protocol)
                self._since[request.protocol] = time.monotonic()

        return busy

    async def sweep(self) -> None:
        """Closes what is idle, until it is cancelled."""
        while True:
            await asyncio.sleep(min(SWEEP_S, self._idle_s / 2))
            self._close_idle(time.monotonic())

    def _close_idle(self, now: float) -> None:
        assert self._server is not None
        open_ones = list(self._server.connections)
        self._since = {each: self._since.get(each, now) for each in open_ones}
        for each in open_ones:
            is_idle = each not in self._busy and now - self._since[each] > self._idle_s
            if is_idle and each.transport is not None:
                each.transport.abort()


class _Full(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(_FULL)
        transport.close()
