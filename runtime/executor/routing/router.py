"""Chooses an engine for each request: the one where the least work stands before its reply.

The work is the uncached part of the prompt, and a share of the engine's waiting work, both in
positions of a forward pass; no engine gets much more than the mean. So a request goes where its
prompt is cached; if too much work waits there, another engine computes the prefix, and both hold it
(Preble's exploitation and exploration, Srivatsa et al., ICLR 2025, with one price for both; the
bound is that of consistent hashing with bounded loads, Mirrokni et al., SODA 2018).

Of a thousand engines only a few are considered: those that hold most of the prompt, and those with
the least work, from both ends until no other engine can be better (the threshold algorithm, Fagin
et al., PODS 2001).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sgc.runtime.executor.routing.held import Held, Use
from sgc.runtime.executor.routing.holders import Holders, Unseen
from sgc.runtime.executor.routing.members import Member, Ready

# A held position counts so many times a waiting one: waiting work is done in batches, and a
# position computed anew takes room from other prefixes.
HOLDING = 20
# The most work that an engine may have to get another request: this share above the mean, plus so
# many times the request's own work where most of it is held. So a prefix that all requests share is
# soon on all engines.
SPREAD, MARGIN = 0.5, 4.0
# An engine that did not answer is tried again after this long, then after twice as long, and so on.
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 16.0


@dataclass(frozen=True, slots=True)
class Ticket:
    """A request that was sent to an engine. expected: how many of the prompt's blocks the engine
    was believed to hold; age: of the last of these, None if it was in use; work: the work that the
    request adds."""

    member: Member
    expected: int
    age: int | None
    work: int
    use: Use


class NobodyAnswers(Exception):
    """Every engine has just failed."""


class Router:
    """Tracks what engines hold and do. Not for several threads.

    block_tokens: tokens of a block. clock: seconds, for when an engine is tried again. n_seen: how
    many engines were considered in all.
    """

    def __init__(self, block_tokens: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.block_tokens = block_tokens
        self.n_seen = 0
        self._members: dict[str, Member] = {}
        self._holders, self._ready = Holders(), Ready()
        self._away: list[Member] = []  # until they are tried again
        self._next_at = math.inf  # when the first of them is
        self._clock = clock
        self._turn = 0

    @property
    def members(self) -> list[Member]:
        return list(self._members.values())

    def add(self, name: str, room: int) -> Member:
        """Adds an engine whose pool has room for so many blocks."""
        taken = {each.number for each in self._members.values()}
        number = next(n for n in range(len(taken) + 1) if n not in taken)
        member = Member(name, number, Held(room, self._holders, 1 << number))
        self._members[name] = member
        self._ready.put(member)
        return member

    def fit(self, member: Member, room: int) -> None:
        """Records that the engine's pool has room for so many blocks."""
        if room == member.held.room:
            return
        is_ready = member in self._ready
        if is_ready:
            self._ready.take(member)
        member.held.fit(room)
        if is_ready:
            self._ready.put(member)

    def remove(self, member: Member) -> None:
        """Stops sending requests to an engine; those that run there may end."""
        if member in self._ready:
            self._ready.take(member)
        else:
            self._away.remove(member)
        member.held.clear()
        del self._members[member.name]

    def send(self, blocks: Sequence[int], n_out: float, without: Collection[str] = ()) -> Ticket:
        """Chooses the engine of a request that is expected to generate `n_out` tokens, and counts
        it there until `done`, `left` or `failed`. without: names of engines to exclude.

        Raises NobodyAnswers if there is no other that may answer.
        """
        self._come_back(self._clock())
        usable = self._ready.mask
        for name in without:
            if name in self._members:
                usable &= ~self._members[name].bit
        if not usable:
            raise NobodyAnswers
        own = len(blocks) * self.block_tokens + n_out
        member, expected = self._best(blocks, own, usable)
        age = member.held.age(blocks[expected - 1]) if expected else 0
        work = math.ceil(own - expected * self.block_tokens)
        self._turn += 1
        self._ready.take(member)
        use = member.held.use(blocks, math.ceil(n_out / self.block_tokens))
        member.work += work
        member.n_running += 1
        member.turn = self._turn
        self._ready.put(member)
        return Ticket(member, expected, age, work, use)

    def _best(self, blocks: Sequence[int], own: float, usable: int) -> tuple[Member, int]:
        """The engine with the least work before the reply, and the number of blocks that it
        holds."""
        unseen = Unseen(self._holders.levels(blocks), usable)
        most = self._most(own - unseen.depth * self.block_tokens, usable)
        worth = HOLDING * self.block_tokens
        best: tuple[tuple[float, ...], Member, int] | None = None
        for work, *others in self._ready:
            least = (work - unseen.depth * worth, *others)  # of all that are unseen
            if work > most or (best is not None and best[0] < least):
                break
            for number in (others[-1], unseen.deepest()):
                if not unseen.see(number):
                    continue
                self.n_seen += 1
                member = self._ready[number]
                n = member.held.n_held(blocks)
                price = (member.work - n * worth, *member.rank[1:])
                if member.work <= most and (best is None or price < best[0]):
                    best = price, member, n
        assert best is not None
        return best[1], best[2]

    def _most(self, added: float, usable: int) -> float:
        """The most work that an engine may have. added: by the request, where most is held."""
        work, n = self._ready.work, len(self._ready)
        left_out = self._ready.mask & ~usable
        while left_out:
            number = left_out.bit_length() - 1
            left_out &= ~(1 << number)
            work, n = work - self._ready[number].work, n - 1
        return (1 + SPREAD) * work / n + MARGIN * added

    def done(self, ticket: Ticket, found: int | None = None) -> None:
        """Records that the engine has answered. found: the number of the prompt's blocks that were
        cached there, None if it does not say."""
        self.left(ticket)
        ticket.member.n_failed = 0
        if found is not None and ticket.expected:
            ticket.member.held.learn(ticket.expected, found, ticket.age)

    def left(self, ticket: Ticket) -> None:
        """Records that the answer is not awaited any more."""
        member = ticket.member
        is_ready = member in self._ready
        if is_ready:
            self._ready.take(member)
        member.n_running -= 1
        member.work -= ticket.work
        member.held.release(ticket.use)
        if is_ready:
            self._ready.put(member)

    def failed(self, ticket: Ticket) -> None:
        """Records that the engine did not answer: it gets no requests for a while, and is assumed
        to hold nothing afterwards. If several running requests fail there, they count as one
        failure."""
        self.left(ticket)
        member, now = ticket.member, self._clock()
        self._come_back(now)
        if member not in self._ready:
            return
        self._ready.take(member)
        member.held.clear()
        doubled = min(member.n_failed, 16)  # more is longer than the longest wait
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**doubled)
        member.n_failed += 1
        member.tried_at = now + wait_s
        self._away.append(member)
        self._next_at = min(self._next_at, member.tried_at)

    def forget(self) -> None:
        """Forgets what engines held."""
        for member in self.members:
            is_ready = member in self._ready
            if is_ready:
                self._ready.take(member)
            member.held.clear()
            if is_ready:
                self._ready.put(member)

    def _come_back(self, now: float) -> None:
        """Makes engines that did not answer available again when their wait is over."""
        if now < self._next_at:
            return
        for member in [each for each in self._away if each.tried_at <= now]:
            self._away.remove(member)
            self._ready.put(member)
        self._next_at = min((each.tried_at for each in self._away), default=math.inf)
