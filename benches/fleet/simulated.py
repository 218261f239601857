"""One simulated engine: steps of a measured cost, a pool of blocks, first come first served."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass

STEP_S, POSITION_S = 0.030, 0.0004  # as in program_load.py
CHUNK = 512  # positions of a step
BLOCK = 8  # tokens


@dataclass(slots=True, eq=False)
class Request:
    """blocks: keys of the prompt's blocks; made: of its reply's."""

    blocks: Sequence[int]
    made: Sequence[int]
    n_out: int
    n_cached: int = 0
    to_compute: int = 0
    to_generate: int = 0


class Pool:
    """Cached blocks, of one engine, or of a fleet whose engines could read each other's at once.
    Those that no request uses are evicted, the least recently used first."""

    def __init__(self, n_blocks: int) -> None:
        self.n_blocks = n_blocks
        self.users: dict[int, int] = {}
        self.idle: OrderedDict[int, None] = OrderedDict()
        self.n_promised = 0  # blocks of replies that run

    def has_room(self, request: Request) -> bool:
        pinned = len(self.users) + self.n_promised
        fresh = sum(block not in self.users for block in request.blocks)
        return pinned + fresh + len(request.made) <= self.n_blocks

    def use(self, request: Request) -> int:
        """Keeps the prompt's blocks for a request; returns how many of the first were there."""
        n_cached = 0
        for block in request.blocks:
            if block not in self.users and block not in self.idle:
                break
            n_cached += 1
        self.n_promised += len(request.made)
        for block in request.blocks:
            self.idle.pop(block, None)
            self.users[block] = self.users.get(block, 0) + 1
        self._evict()
        return n_cached

    def release(self, request: Request) -> None:
        self.n_promised -= len(request.made)
        for block in reversed(request.made):
            self.idle[block] = None
        for block in reversed(request.blocks):
            left = self.users[block] - 1
            if left:
                self.users[block] = left
            else:
                del self.users[block]
                self.idle[block] = None
        self._evict()

    def _evict(self) -> None:
        n_over = len(self.users) + len(self.idle) + self.n_promised - self.n_blocks
        while n_over > 0 and self.idle:
            self.idle.popitem(last=False)
            n_over -= 1


class Engine:
    """Runs requests on a virtual clock. `ends_at` is when its current steps end; inf if idle."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.ends_at = math.inf
        self.version = 0
        self._begun = self._step_s = 0.0
        self._n_steps = 0
        self.busy_s = 0.0

    def ask(self, request: Request, now: float) -> None:
        self.waiting.append(request)
        if self.ends_at == math.inf:
            self._begin(now)
        elif self._n_steps > 1:  # it joins after the step that runs
            n_done = min(
                self._n_steps, max(1, math.ceil((now - self._begun) / self._step_s - 1e-9))
            )
            self._n_steps = n_done
            self.ends_at = self._begun + n_done * self._step_s
            self.version += 1

    def end(self) -> list[Request]:
        """Ends the current steps; returns the requests that have ended, and begins the next."""
        now, n = self.ends_at, self._n_steps
        self.busy_s += n * self._step_s
        ended = []
        left = CHUNK
        for request in self.running:
            if request.to_compute:
                part = min(left, request.to_compute)
                request.to_compute -= part
                left -= part
                if request.to_compute:
                    continue
                request.to_generate -= 1  # the prompt's last position gives a token
            else:
                request.to_generate -= n
            if request.to_generate <= 0:
                ended.append(request)
        for request in ended:
            self._release(request)
        self._begin(now)
        return ended

    def _begin(self, now: float) -> None:
        while self.waiting and self._admit(self.waiting[0]):
            self.running.append(self.waiting.popleft())
        self.version += 1
        if not self.running:
            self.ends_at = math.inf
            return
        computing = min(CHUNK, sum(each.to_compute for each in self.running))
        n_decoding = sum(not each.to_compute for each in self.running)
        self._n_steps = 1
        if not computing:
            self._n_steps = min(each.to_generate for each in self.running)
        self._step_s = STEP_S + POSITION_S * (computing + n_decoding)
        self._begun, self.ends_at = now, now + self._n_steps * self._step_s

    def _admit(self, request: Request) -> bool:
        if self.running and not self.pool.has_room(request):
            return False
        request.n_cached = self.pool.use(request)
        request.to_compute = max(1, (len(request.blocks) - request.n_cached) * BLOCK)
        request.to_generate = request.n_out
        return True

    def _release(self, request: Request) -> None:
        self.running.remove(request)
        self.pool.release(request)
