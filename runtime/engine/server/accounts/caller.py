"""Who asks: what the server knows of a client's call, over gRPC or HTTP."""

from __future__ import annotations

import math
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from sgc.runtime.engine.server.accounts.quotas import Account

_SANE = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")


@dataclass(slots=True, eq=False)
class Caller:
    """One call: a gRPC client's stream, or one HTTP request.

    domain, account: of the client's token, if it has one. began_at: when the call came, on the
    monotonic clock. timeout_s: how long it may take, if the client said so. is_counted, is_running:
    whether the account has counted an HTTP request, and counts it as running; has_reserved: whether
    tokens were reserved for it. priority: the requested one. id: as in the log; totals: the sums of
    its engine requests, for the log. traceparent: the span that they are in.
    """

    domain: bytes = b""
    account: Account | None = None
    began_at: float = field(default_factory=time.monotonic)
    timeout_s: float | None = None
    is_counted: bool = False
    is_running: bool = False
    has_reserved: bool = False
    priority: int | None = None
    id: str = ""
    traceparent: str = ""
    totals: dict[str, Any] = field(default_factory=dict)

    @property
    def deadline(self) -> float:
        """When the client's own time limit ends, on the monotonic clock."""
        return math.inf if self.timeout_s is None else self.began_at + self.timeout_s

    def limit(self, timeout_s: float) -> None:
        """Shortens how long the call may take."""
        self.timeout_s = timeout_s if self.timeout_s is None else min(self.timeout_s, timeout_s)


def given_id(given: str | bytes) -> str:
    """A call's id: the client's own, if it is a plain word; else a new one."""
    if isinstance(given, str) and _SANE.fullmatch(given):
        return given
    return "req-" + secrets.token_hex(12)
