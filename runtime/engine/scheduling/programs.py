"""The policy `program`: the run with the least left to generate, and the most cached, goes first.

Mean completion is lowest when the shortest remaining work goes first, and throughput is highest
when what is cached is used before it is evicted. Our client knows how much is left, since it has
the program's graph, and sends it with each request (`Request.run`). Owners of requests take turns
by how much they were served, so that a client's claims never move other clients' requests back: a
lie only reorders the liar's own requests.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from sgc.runtime.engine.ints import Ints
from sgc.runtime.engine.requests.request import Generate, Work
from sgc.runtime.engine.scheduling.orders import ByPrefix

POSITIONS_A_TOKEN = 64
"""A prompt's positions that take about as long as generating a token in a batch."""

_MAX_RUNS = 16_384  # owners whose service is remembered
_MAX_OWNERS = 4_096
_EXPECTED = 64  # tokens of a request that belongs to no run, and of others until some have ended
_Run = tuple[bytes, int]  # owner, id


class Remaining:
    """What is left of runs, in tokens to generate one after another.

    For a run that does not say, the tokens served so far are used: the longer a run has gone on,
    the longer it is likely to go on (Autellix). Requests that belong to no run count the same:
    among them the longest cached prefix goes first, as in `lpm`.
    """

    def __init__(self) -> None:
        self._served: OrderedDict[_Run, int] = OrderedDict()
        self._mean = float(_EXPECTED)

    def left(self, work: Work) -> int:
        run = work.request.run
        if run is None:
            return _EXPECTED
        if run.remaining is not None:
            return run.remaining
        return self._served.get((work.request.owner, run.id), 0)

    def own(self, work: Work) -> int:
        """The tokens that the request itself is likely to generate."""
        return min(work.n_left, max(1, round(self._mean) - work.n_generated))

    def end(self, work: Work) -> None:
        """Records what a request was served, when it ends."""
        if isinstance(work.request.kind, Generate):
            self._mean += (work.n_generated - self._mean) / 16
        run = work.request.run
        if run is None or run.remaining is not None:
            return
        key = (work.request.owner, run.id)
        self._served[key] = self._served.pop(key, 0) + work.n_generated
        if len(self._served) > _MAX_RUNS:
            self._served.popitem(last=False)


def key_of(work: Work) -> tuple[int, int]:
    """Smallest first: a remaining token counts as much as a cached position, which stays in memory
    as long as its request waits. Streams of one fork have equal keys, and are admitted together.
    Then the prefix that was cached first, which would be evicted first."""
    return work.wait.left - work.wait.n_known, work.wait.known_since


def _n_uncached(work: Work) -> int:
    """The positions to run; these may include cached ones, such as all positions for a mean."""
    return len(work.tokens) - work.wait.n_known


class _Owned:
    """The waiting requests of one owner."""

    def __init__(self, known: Callable[[Work], int]) -> None:
        self.order = ByPrefix(known, key_of)
        self.n = 0


class ByProgram:
    """An order of waiting requests (`orders.py`): of the owner that was served least, the request
    of the run with the least left. known: as in `ByPrefix`.

    Owners share as in start-time fair queueing: an owner that comes, or comes back, begins with the
    service of the least served one, so that it neither waits for others to catch up nor has credit.
    """

    def __init__(self, known: Callable[[Work], int]) -> None:
        self.remaining = Remaining()
        self._known = known
        self._waiting: dict[bytes, _Owned] = {}
        self._served: dict[bytes, float] = {}
        self._floor = 0.0

    def add(self, work: Work) -> None:
        work.wait.left = self.remaining.left(work)
        owner = work.request.owner
        owned = self._waiting.get(owner)
        if owned is None:
            owned = self._waiting[owner] = _Owned(self._known)
        owned.order.add(work)
        owned.n += 1

    def peek(self) -> Work | None:
        found = self._waiting
        owner = min(found, key=self._served_of) if len(found) > 1 else next(iter(found), None)
        return None if owner is None else found[owner].order.peek()

    def discard(self, work: Work) -> None:
        owner = work.request.owner
        owned = self._waiting[owner]
        owned.order.discard(work)
        owned.n -= 1
        if owned.n == 0:
            del self._waiting[owner]

    def change(self, work: Work, n_known: int) -> None:
        self._waiting[work.request.owner].order.change(work, n_known)

    def grown(self, namespace: bytes, tokens: Ints, start: int) -> None:
        for owned in self._waiting.values():
            owned.order.grown(namespace, tokens, start)

    def admit(self, work: Work) -> None:
        """Charges a request, which has just left the order, to its owner."""
        owner = work.request.owner
        before = self._served_of(owner)
        has_others = len(self._waiting) > (owner in self._waiting)
        least = min(before, *map(self._served_of, self._waiting)) if has_others else before
        self._floor = max(self._floor, least)
        work.wait.charged = self.remaining.own(work)
        self._served[owner] = before + work.wait.charged + _n_uncached(work) / POSITIONS_A_TOKEN
        if len(self._served) > _MAX_OWNERS:
            self._served = {o: n for o, n in self._served.items() if n > self._floor}
        if len(self._served) > _MAX_OWNERS:
            del self._served[min(self._served, key=self._served.__getitem__)]

    def end(self, work: Work) -> None:
        """Corrects the charge of an admitted request when it ends, as its owner was charged an
        estimate."""
        owner = work.request.owner
        if owner in self._served:
            self._served[owner] += work.n_generated - work.wait.charged
        self.remaining.end(work)

    def _served_of(self, owner: bytes) -> float:
        return max(self._floor, self._served.get(owner, 0.0))
