"""Writes a line of the access log for each HTTP request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from sgc.runtime.engine.http.calls.guard import CALLER
from sgc.runtime.engine.http.calls.request_ids import id_of
from sgc.runtime.engine.logs.access import AccessLog
from sgc.runtime.engine.server.accounts.caller import Caller

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def logging_to(access: AccessLog) -> Any:
    """The middleware; it encloses those that turn errors into responses."""

    @web.middleware
    async def logged(request: web.Request, handler: Handler) -> web.StreamResponse:
        caller, status = Caller(), None
        try:
            response = await handler(request)
            if request.transport is not None:
                status = response.status
            return response
        except asyncio.CancelledError:  # its client disconnected
            raise
        finally:
            known = request.get(CALLER, caller)
            access.http(request.method, request.path, status, known, id_of(request))

    return logged
