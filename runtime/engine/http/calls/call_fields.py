"""What every call may say beside its own fields: how long it may take, as a field or as a header.

What OpenAI's client sends by itself (`X-Stainless-Read-Timeout`) is no deadline: it is how long the
client waits for the next bytes, and it asks again after that. It is not read.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from sgc.runtime.engine.http.errors import Json, bad
from sgc.runtime.engine.server.caller import Caller

TIMEOUT, TIMEOUT_HEADER = "timeout", "X-Request-Timeout"
CALL_FIELDS = frozenset({TIMEOUT})
MAX_TIMEOUT_S = 7 * 86_400.0


def take_fields(body: Json, caller: Caller) -> None:
    """Takes the fields of the call out of a body; raises HttpError."""
    timeout_s = body.pop(TIMEOUT, None)
    if timeout_s is not None:
        if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float):
            raise _wrong(TIMEOUT, timeout_s, "invalid_type")
        caller.limit(_checked(TIMEOUT, timeout_s))


def header_timeout_s(request: web.Request) -> float | None:
    """How long the call may take, of its header; raises HttpError."""
    given = request.headers.get(TIMEOUT_HEADER)
    if given is None:
        return None
    try:
        timeout_s = float(given)
    except ValueError as error:
        raise _wrong(TIMEOUT_HEADER, given, "invalid_value") from error
    return _checked(TIMEOUT_HEADER, timeout_s)


def _checked(name: str, timeout_s: float) -> float:
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise _wrong(name, timeout_s, "invalid_value")
    return float(timeout_s)


def _wrong(name: str, found: Any, code: str) -> Exception:
    most = f"a number of seconds above 0 and up to {MAX_TIMEOUT_S:g}"
    return bad(f"{name} must be {most}, found {str(found)[:40]!r}", name, code)
