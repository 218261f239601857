"""The fields and headers that every call may have: its priority, and how long it may take.

The header that OpenAI's client sends by itself (`X-Stainless-Read-Timeout`) is ignored. It is no
deadline, but how long the client waits for the next bytes before it asks again.
"""

from __future__ import annotations

import re
from typing import Any

from aiohttp import web

from sgc.runtime.engine.http.errors import Json, bad
from sgc.runtime.engine.server.accounts.caller import Caller

TIMEOUT, TIMEOUT_HEADER = "timeout", "X-Request-Timeout"
PRIORITY, TIER = "priority", "service_tier"
CALL_FIELDS = frozenset({TIMEOUT, PRIORITY})
_TIERS = {"flex": -1, "priority": 1}
_NATIVE = "/generate"
_PROGRAMS = "/v1/programs/"
MAX_TIMEOUT_S = 7 * 86_400.0
_DECIMAL = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


def take_fields(body: Json, caller: Caller, path: str) -> None:
    """Takes the fields of the call out of a body; raises HttpError.

    As in vLLM a lower `priority` goes first, and in SGLang's own API a higher one.
    """
    if not path.startswith(_PROGRAMS):
        _take_priority(body, caller, 1 if path == _NATIVE else -1)
    timeout_s = body.pop(TIMEOUT, None)
    if timeout_s is not None:
        if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float):
            raise _wrong(TIMEOUT, timeout_s, "invalid_type")
        caller.limit(_checked(TIMEOUT, timeout_s))


def _take_priority(body: Json, caller: Caller, sign: int) -> None:
    priority = body.pop(PRIORITY, None)
    if priority is not None:
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise bad(f"{PRIORITY} must be an integer", PRIORITY, "invalid_type")
        caller.priority = sign * ((priority > 0) - (priority < 0))
    elif isinstance(tier := body.get(TIER), str):
        caller.priority = _TIERS.get(tier)


def header_timeout_s(request: web.Request) -> float | None:
    """How long the call may take, from its header; raises HttpError."""
    given = request.headers.get(TIMEOUT_HEADER)
    if given is None:
        return None
    if not _DECIMAL.fullmatch(given.strip()):
        raise _wrong(TIMEOUT_HEADER, given, "invalid_value")
    return _checked(TIMEOUT_HEADER, float(given))


def _checked(name: str, timeout_s: float) -> float:
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise _wrong(name, timeout_s, "invalid_value")
    return float(timeout_s)


def _wrong(name: str, found: Any, code: str) -> Exception:
    most = f"a number of seconds above 0 and up to {MAX_TIMEOUT_S:g}"
    return bad(f"{name} must be {most}, found {str(found)[:40]!r}", name, code)
