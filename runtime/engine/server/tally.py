"""What became of the requests: counted in the server process, which all of them come by.

Keeps sums, nothing of a single request; `watch` is told of each one that finishes
(`metrics.py`, where metrics are on). Written by `session.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sgc.proto import engine_pb2 as pb

Watch = Callable[[str, pb.Usage], None]
# What is the engine's fault; every other error is a refusal.
_FAILURES = frozenset({pb.ERROR_CODE_UNAVAILABLE, pb.ERROR_CODE_INTERNAL})


@dataclass(slots=True)
class Tally:
    """requests = finished + refused + cancelled + failed + those in flight."""

    requests: int = 0
    finished: int = 0
    refused: int = 0
    cancelled: int = 0
    failed: int = 0
    watch: Watch | None = None

    def fail(self, code: pb.ErrorCode) -> None:
        """A request got an error for a reply."""
        if code in _FAILURES:
            self.failed += 1
        else:
            self.refused += 1

    def write(self, stats: pb.Stats) -> None:
        """Puts the counts where the step process, which does not see all requests, has none."""
        stats.requests = self.requests
        stats.finished_requests = self.finished
        stats.refused_requests = self.refused
        stats.cancelled_requests = self.cancelled
        stats.failed_requests = self.failed
