"""Collects the requests of one run."""

from __future__ import annotations

import time
from typing import Any

from sgc.ir.graph import Node
from sgc.runtime.executor.run.record import Request, RunResult, Stats


class Requests:
    """Requests and prefetches in the order in which they ended.

    prefetches: those that have ended; they are not requests of the program.
    """

    def __init__(self) -> None:
        self.made: list[Request] = []
        self.prefetches: list[Request] = []
        self.failed_prefetches = 0
        self._draws: dict[str, list[Request]] = {}  # by the value that they returned
        self._start_s = time.monotonic()

    def add_draw(self, node: Node, request: Request) -> None:
        """Keeps a request of a sampling op."""
        self.made.append(request)
        self._draws.setdefault(node.results[-1].name, []).append(request)

    def draws_of(self, name: str) -> list[Request]:
        """Returns the requests that produced a value; none if it was not generated."""
        return self._draws.get(name, [])

    def meta_info(self, name: str) -> Any:
        """Returns how a value was generated: a list for several texts, None if it was not."""
        found = [request.meta_info() for request in self._draws.get(name, ())]
        return None if not found else found[0] if len(found) == 1 else found

    def take_in(self, result: RunResult) -> None:
        """Adds the requests of a mapped call."""
        self.made.extend(result.requests)
        self.prefetches.extend(result.prefetches)
        self.failed_prefetches += result.stats.failed_prefetches

    def by_start(self) -> tuple[Request, ...]:
        return tuple(sorted(self.made, key=lambda request: request.start_s))

    def stats(self, requests: tuple[Request, ...]) -> Stats:
        """Returns the sums of the requests up to now."""
        wall_s = time.monotonic() - self._start_s
        return Stats.of(requests, wall_s, self.prefetches, self.failed_prefetches)
