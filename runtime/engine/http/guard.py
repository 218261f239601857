"""Who may ask: the bearer token, or, where there is none, whom a browser on this machine serves.

Without a token the address is loopback's, and any web page can make a browser send requests
there, under a name of its own that it lets resolve to this machine. So then `Host` must name
loopback, and an `Origin` must be that same host: pages of others are refused.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from sgc.runtime.engine.http.errors import HttpError
from sgc.runtime.engine.listen import is_loopback

OPEN_PATHS = frozenset({"/health"})  # probes carry no token
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def guard(token: str | None) -> Any:
    """The middleware that lets only those in who may."""
    expected = None if token is None else f"Bearer {token}".encode()

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if expected is None:
            check_browser(request.headers.getall(hdrs.HOST, []), request.headers.get(hdrs.ORIGIN))
        elif request.path not in OPEN_PATHS:
            check_token(request.headers.get(hdrs.AUTHORIZATION, ""), expected)
        return await handler(request)

    return guarded


def check_token(given: str, expected: bytes) -> None:
    """Raises HttpError 401; the comparison takes as long for every wrong token."""
    if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), expected):
        message = "a valid token is required: Authorization: Bearer ..."
        raise HttpError(401, message, code="invalid_api_key")


def check_browser(hosts: list[str], origin: str | None) -> None:
    """Raises HttpError 403 for a request that a page of another site may have made."""
    if len(hosts) != 1 or not is_loopback(_name_of(hosts[0])):
        raise HttpError(403, "Host must name this machine's loopback, as no token is set")
    if origin is not None and origin.partition("://")[2].lower() != hosts[0].lower():
        raise HttpError(403, "a page of another origin may not ask, as no token is set")


def _name_of(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
