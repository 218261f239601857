"""The waiting requests, and which of them is next. It handles no tensors and no memory.

Preempted requests resume first. Then the policy chooses, within the bound of `turns.py`: once a
request has been passed too often, requests are served in order of arrival.

Policies (SGLang paper, section 3 and its ablations):

* lpm: the longest cached prefix; of equally long ones, the one that was cached first, which would
  be evicted first; of requests with the same prefix, the oldest;
* program: the run of a program with the least left to generate (`programs.py`);
* dfs: depth first through the tree of the waiting prompts;
* fcfs: first come, first served;
* random: a pseudo-random order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sgc.runtime.engine.names import POLICIES
from sgc.runtime.engine.requests.request import State, Work
from sgc.runtime.engine.scheduling.orders import ByPrefix, ByPrompt, Heap, Order
from sgc.runtime.engine.scheduling.programs import ByProgram
from sgc.runtime.engine.scheduling.turns import Turns


def _order_of(policy: str, known: Callable[[Work], int]) -> Order:
    if policy == "lpm":
        return ByPrefix(known)
    if policy == "program":
        return ByProgram(known)
    if policy == "dfs":
        return ByPrompt()
    return Heap(_scrambled if policy == "random" else _by_arrival)


def _by_arrival(work: Work) -> tuple[int]:
    return (work.order,)


def _resuming(work: Work) -> tuple[bool, int]:
    """Parts of joins first: what others wait for holds memory."""
    return (not work.is_part, work.order)


def _scrambled(work: Work) -> tuple[int]:
    """splitmix64 of the arrival order."""
    z = (work.order + 1) * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    return (z ^ (z >> 31),)


class WaitingQueue:
    """known: pins a request's cached prefix and returns its length; called for `lpm` and `program`.

    Raises ValueError for an unknown policy.
    """

    def __init__(self, policy: str, known: Callable[[Work], int]) -> None:
        if policy not in POLICIES:
            raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {policy!r}")
        self.policy = policy
        self._order = _order_of(policy, known)
        self._known = self._order if isinstance(self._order, ByPrefix | ByProgram) else None
        self._programs = self._order if isinstance(self._order, ByProgram) else None
        self._by_arrival = Heap(_by_arrival)
        self._preempted = Heap(_resuming)
        self._turns = Turns()

    def __len__(self) -> int:
        """The number of waiting requests, with parked and without preempted ones."""
        return self._turns.n_waiting

    def add(self, work: Work) -> None:
        """Adds an arriving request."""
        work.wait.group = self._turns.join()
        self.wake(work)

    def wake(self, work: Work) -> None:
        """Makes a request wait that arrived, or was parked or preempted."""
        work.state = State.WAITING
        if work.wait.group is None:
            self._preempted.add(work)
            return
        self._by_arrival.add(work)
        if self.policy != "fcfs":
            self._order.add(work)

    def begin(self) -> None:
        """Begins a step: later arrivals form a new group."""
        self._turns.close()

    def peek(self) -> Work | None:
        """The next request; None if none may be admitted now."""
        work = self._preempted.peek()
        if work is not None:
            return work
        due = self._turns.due()
        if due is None:
            return self._by_arrival.peek() if self.policy == "fcfs" else self._order.peek()
        oldest = self._by_arrival.peek()
        # All of the due group may be parked; then no later request is admitted.
        group = None if oldest is None else oldest.wait.group
        return oldest if group is not None and group <= due else None

    def peek_preempted(self) -> Work | None:
        """The next of those that had their turn."""
        return self._preempted.peek()

    @property
    def is_due(self) -> bool:
        """Whether some group may no longer be passed."""
        return self._turns.due() is not None

    def has_less(self, work: Work, n_cached: int) -> bool:
        """Records the cached length of the next request; returns whether it is less than when it
        was chosen, so that another request may be next."""
        if self._known is None or work.wait.group is None:
            return False
        if n_cached == work.wait.n_known:
            return False
        is_less = n_cached < work.wait.n_known
        self._known.change(work, n_cached)
        return is_less and not self.is_due

    def admit(self, work: Work) -> None:
        """Records that a request was admitted."""
        self._leave(work, State.RUNNING)
        if work.wait.group is not None:
            if self._programs is not None:
                self._programs.admit(work)
            self._turns.admit(work.wait.group)
            work.wait.group = None

    def end(self, work: Work) -> None:
        """Records that a request that was admitted has ended."""
        if self._programs is not None:
            self._programs.end(work)

    def in_turn(self, running: Sequence[Work]) -> Sequence[Work]:
        """Running requests, oldest first, in the order in which they get what is scarce."""
        if self._programs is None or len(running) < 2:
            return running
        return sorted(running, key=lambda work: (work.wait.left, work.order))

    def park(self, work: Work) -> None:
        """Parks a request that follows a running one; `wake` brings it back."""
        self._leave(work, State.PARKED)

    def cancel(self, work: Work) -> None:
        """Removes a request, parked or not."""
        self._leave(work, State.DONE)
        if work.wait.group is not None:
            self._turns.cancel(work.wait.group)
            work.wait.group = None
        else:  # it was preempted
            self.end(work)

    def grown(self, work: Work, start: int, end: int) -> None:
        """Records that positions start to end of a running request were cached."""
        if self._known is not None:
            self._known.grown(work.request.namespace, work.tokens.view[:end], start)

    def check(self) -> None:
        self._turns.check()

    def _leave(self, work: Work, state: State) -> None:
        was_waiting = work.state is State.WAITING
        work.state = state
        if not was_waiting:
            return
        if work.wait.group is None:
            self._preempted.discard(work)
            return
        self._by_arrival.discard(work)
        if self.policy != "fcfs":
            self._order.discard(work)
            work.wait.prompt = None
