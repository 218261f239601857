"""Chooses an engine for each request: the one where the least work stands before its reply.

The work is what of the prompt would have to be computed, and a share of what waits there, both in
positions of a forward pass; no engine gets much more than the mean. So a request goes where its
prompt is cached; if too much waits there, another engine computes the prefix, and both hold it
(Preble's exploitation and exploration, Srivatsa et al., ICLR 2025, with one price for both; the
bound is that of consistent hashing with bounded loads, Mirrokni et al., SODA 2018).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sgc.runtime.executor.routing.held import Held

# What waits counts less than what would be computed: it is worked on in batches, and what is
# computed anew takes room from other prefixes.
WAITING = 0.05
# The most work that an engine may have for the next request to go there: so much above the mean,
# and so many times what the request adds where most of it is held. A prefix that all requests share
# is thus soon on all engines.
SPREAD, MARGIN = 0.1, 4.0
# An engine that did not answer is tried again after this long, then after twice as long, and so on.
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 16.0


@dataclass(slots=True)
class Member:
    """An engine: what it holds, and the work that waits there. n_failed: how often in a row it did
    not answer; tried_at: when it is tried again."""

    name: str
    held: Held
    work: float = 0.0
    n_running: int = 0
    n_failed: int = 0
    tried_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Ticket:
    """A request that was sent to an engine. expected: the prompt's blocks that it was believed to
    hold; age: how old the last of them was; work: what the request adds there."""

    member: Member
    expected: int
    age: int
    work: float


class NobodyAnswers(Exception):
    """Each engine has just failed."""


class Router:
    """Keeps count of what engines hold and do. Not for several threads.

    block_tokens: tokens of a block. clock: seconds, for when an engine is tried again.
    """

    def __init__(self, block_tokens: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.block_tokens = block_tokens
        self.members: list[Member] = []
        self._clock = clock
        self._turn = 0

    def add(self, name: str, room: int) -> Member:
        """An engine whose pool has room for so many blocks."""
        member = Member(name, Held(room))
        self.members.append(member)
        return member

    def remove(self, member: Member) -> None:
        """The engine gets no more requests; those that run there may end."""
        self.members.remove(member)

    def send(self, blocks: Sequence[int], n_out: float, without: Collection[str] = ()) -> Ticket:
        """Chooses the engine of a request that is expected to generate `n_out` tokens, and counts
        it there until `done`, `left` or `failed`. without: names of engines that it must not be.

        Raises NobodyAnswers if there is no other that may answer.
        """
        now = self._clock()
        able = [m for m in self.members if m.tried_at <= now and m.name not in without]
        if not able:
            raise NobodyAnswers
        own = len(blocks) * self.block_tokens + n_out
        member, expected = self._best(able, blocks, own)
        age = member.held.age(blocks[expected - 1]) if expected else 0
        work = own - expected * self.block_tokens
        member.held.hold(blocks)
        member.work += work
        member.n_running += 1
        return Ticket(member, expected, age, work)

    def _best(self, able: list[Member], blocks: Sequence[int], own: float) -> tuple[Member, int]:
        """The engine with the least work before the reply, and the blocks that it holds."""
        held = [member.held.n_held(blocks) for member in able]
        mean = sum(member.work for member in able) / len(able)
        most = (1 + SPREAD) * mean + MARGIN * (own - max(held) * self.block_tokens)
        self._turn += 1
        best: tuple[float, int, int] | None = None
        chosen = 0
        for turn in range(len(able)):
            number = (turn + self._turn) % len(able)
            member = able[number]
            if member.work > most:
                continue
            cost = WAITING * member.work - held[number] * self.block_tokens
            price = (cost, member.n_running, len(member.held))
            if best is None or price < best:
                best, chosen = price, number
        return able[chosen], held[chosen]

    def done(self, ticket: Ticket, found: int | None = None) -> None:
        """The engine has answered. found: the blocks of the prompt that were cached there, None if
        it does not say."""
        self.left(ticket)
        ticket.member.n_failed = 0
        if found is not None and ticket.expected:
            ticket.member.held.learn(ticket.expected, found, ticket.age)

    def left(self, ticket: Ticket) -> None:
        """Nobody waits for the answer any more."""
        member = ticket.member
        member.n_running -= 1
        member.work = member.work - ticket.work if member.n_running else 0.0

    def failed(self, ticket: Ticket) -> None:
        """The engine did not answer: it gets no requests for a while, and holds nothing then. Of
        requests that run there, each fails; all of them are one failure."""
        self.left(ticket)
        member, now = ticket.member, self._clock()
        member.held.clear()
        if member.tried_at <= now:
            doubled = min(member.n_failed, 16)  # more is longer than the longest wait
            wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**doubled)
            member.n_failed += 1
            member.tried_at = now + wait_s
