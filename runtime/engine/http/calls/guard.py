"""Which requests are let in: those with a valid token, or, on a server without tokens, those that
no foreign web page can have made (`browser_check.py`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import hdrs, web

from sgc.runtime.engine.http.calls.call_fields import header_timeout_s
from sgc.runtime.engine.http.errors import HttpError
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.accounts.tokens import Tokens
from sgc.runtime.engine.server.browser_check import problem_of
from sgc.runtime.telemetry.traceparent import TRACEPARENT, valid

CALLER = "caller"  # the request's key for its `Caller`
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def guard(tokens: Tokens, open_paths: frozenset[str]) -> Any:
    """The middleware that checks each request's token and stores the `Caller` in the request.

    open_paths: paths that need no token.
    """

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        request[CALLER] = Caller()
        if not tokens:
            check_browser(request.headers.getall(hdrs.HOST, []), request.headers.get(hdrs.ORIGIN))
        elif request.path not in open_paths:
            request[CALLER] = checked_caller(tokens, request.headers.get(hdrs.AUTHORIZATION, ""))
        request[CALLER].timeout_s = header_timeout_s(request)
        request[CALLER].traceparent = TRACEPARENT.get() or valid(request.headers.get("traceparent"))
        return await handler(request)

    return guarded


def checked_caller(tokens: Tokens, given: str) -> Caller:
    """The `Caller` with this token; raises HttpError 401 for a wrong token."""
    caller = tokens.caller_of(given.encode("utf-8", "surrogateescape"))
    if caller is None:
        message = "a valid token is required: Authorization: Bearer ..."
        raise HttpError(401, message, code="invalid_api_key")
    return caller


def check_browser(hosts: list[str], origin: str | None) -> None:
    """Raises HttpError 403 for a request that a page of another site may have made."""
    if problem := problem_of(hosts, origin):
        raise HttpError(403, problem)
