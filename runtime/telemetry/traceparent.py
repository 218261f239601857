"""Which span of a trace the current task's requests belong to, as W3C's `traceparent` has it.

It needs no package: a request passes on its caller's context, whether or not this process traces.
"""

from __future__ import annotations

import re
from contextvars import ContextVar

TRACEPARENT: ContextVar[str] = ContextVar("traceparent", default="")
_FORM = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def valid(given: str | bytes | None) -> str:
    """The trace context that a client gave; "" if there is none, or it is invalid."""
    return given if isinstance(given, str) and _FORM.fullmatch(given) else ""
