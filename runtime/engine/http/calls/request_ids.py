"""An id for every request: the client's own (`X-Request-Id`), or a new one. Every reply carries it,
and every line of the log about the request."""

from __future__ import annotations

from aiohttp import web

from sgc.runtime.engine.server.accounts.caller import given_id

HEADER = "X-Request-Id"
_KEY = "request_id"


def id_of(request: web.Request) -> str:
    """The request's id; a client's id that is not a plain word is replaced."""
    if _KEY not in request:
        request[_KEY] = given_id(request.headers.get(HEADER, ""))
    found: str = request[_KEY]
    return found
