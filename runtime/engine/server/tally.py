"""Counts the outcomes of requests in the server process, which sees all of them.

It keeps sums only; `watch` is called for each request that finishes (by `metrics.py`, if metrics
are on). `session.py` writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sgc.proto import engine_pb2 as pb

Watch = Callable[[str, pb.Usage], None]
# Errors of the engine; every other error is a refusal.
_FAILURES = frozenset({pb.ERROR_CODE_UNAVAILABLE, pb.ERROR_CODE_INTERNAL})


@dataclass(slots=True)
class Tally:
    """requests = finished + refused + cancelled + failed + expired + those in flight."""

    requests: int = 0
    finished: int = 0
    refused: int = 0
    cancelled: int = 0
    failed: int = 0
    expired: int = 0
    watch: Watch | None = None

    def fail(self, code: pb.ErrorCode) -> str:
        """Counts a request that got an error reply; returns the outcome."""
        if code in _FAILURES:
            self.failed += 1
            return "failed"
        if code == pb.ERROR_CODE_DEADLINE_EXCEEDED:
            self.expired += 1
            return "expired"
        self.refused += 1
        return "refused"

    def write(self, stats: pb.Stats) -> None:
        """Writes the counts to `stats`; the step process does not see all requests."""
        stats.requests = self.requests
        stats.finished_requests = self.finished
        stats.refused_requests = self.refused
        stats.cancelled_requests = self.cancelled
        stats.failed_requests = self.failed
        stats.expired_requests = self.expired
