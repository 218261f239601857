"""An id for every request: the client's own (`X-Request-Id`), or a new one. Every reply carries it,
and every line of the log about the request."""

from __future__ import annotations

import re
import secrets

from aiohttp import web

HEADER = "X-Request-Id"
_SANE = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
_KEY = "request_id"


def id_of(request: web.Request) -> str:
    """The request's id; an id of the client's that is no plain word is replaced."""
    if _KEY not in request:
        given = request.headers.get(HEADER, "")
        request[_KEY] = given if _SANE.fullmatch(given) else "req-" + secrets.token_hex(12)
    found: str = request[_KEY]
    return found
