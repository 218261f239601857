"""The engine that is chosen is that which looking at all of them finds, and few are looked at."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

import pytest

from sgc.runtime.executor.routing.members import Member
from sgc.runtime.executor.routing.router import HOLDING, MARGIN, SPREAD, NobodyAnswers, Router

TOKENS = 8  # of a block


class Looking(Router):
    """Looks at all engines before each request, and notes which one is to be chosen."""

    def plainly(
        self, blocks: Sequence[int], n_out: float, without: Collection[str]
    ) -> Member | None:
        now = self._clock()
        able = [m for m in self.members if m.tried_at <= now and m.name not in without]
        if not able:
            return None
        held = {m.name: m.held.n_held(blocks) for m in able}
        own = len(blocks) * TOKENS + n_out - max(held.values()) * TOKENS
        most = (1 + SPREAD) * sum(m.work for m in able) / len(able) + MARGIN * own
        return min(
            (m for m in able if m.work <= most),
            key=lambda m: (m.work - HOLDING * TOKENS * held[m.name], *m.rank[1:]),
        )


class Traffic:
    """Prompts that go on from earlier ones, on engines that come, fail and go."""

    def __init__(self, seed: int, n: int, room: int) -> None:
        self.draw, self.now, self.room = random.Random(seed), 0.0, room
        self.router = Looking(TOKENS, clock=lambda: self.now)
        self.names = [f"e{number}" for number in range(n)]
        for name in self.names:
            self.router.add(name, room)
        self.prompts: list[tuple[int, ...]] = [()]
        self.running: list = []

    def prompt(self) -> tuple[int, ...]:
        draw = self.draw
        base = draw.choice(self.prompts[-40:])
        base = base[: draw.randint(0, len(base))] if draw.random() < 0.3 else base
        made = (*base, *(hash((base, n, draw.random())) for n in range(draw.randint(0, 6))))
        self.prompts.append(made if len(made) < 60 else ())
        return made

    def request(self, is_checked: bool = True) -> None:
        blocks, n_out = self.prompt(), self.draw.randint(0, 60)
        without = self.draw.choices(self.names, k=self.draw.choice((0, 0, 0, 1, 2)))
        expected = self.router.plainly(blocks, n_out, without) if is_checked else None
        try:
            ticket = self.router.send(blocks, n_out, without)
        except NobodyAnswers:
            assert expected is None
            return
        assert not is_checked or ticket.member is expected
        self.running.append(ticket)

    def end(self) -> None:
        ticket = self.running.pop(self.draw.randrange(len(self.running)))
        way = self.draw.random()
        if way < 0.02:
            self.router.failed(ticket)
        elif way < 0.1:
            self.router.left(ticket)
        else:
            self.router.done(ticket, self.draw.choice((ticket.expected, 0, None)))

    def change(self) -> None:
        self.now += self.draw.random()
        members = self.router.members
        if self.draw.random() < 0.02:
            if len(members) > 2 and self.draw.random() < 0.5:
                self.router.remove(self.draw.choice(members))
            else:
                self.names.append(f"e{len(self.names)}")
                self.router.add(self.names[-1], self.room)
        if self.draw.random() < 0.003:
            self.router.forget()

    def check(self) -> None:
        """The tables say what each engine says of itself."""
        router, members = self.router, self.router.members
        ready = [m for m in members if m in router._ready]
        assert sorted(router._ready) == [*router._ready] == sorted(m.rank for m in ready)
        assert router._ready.work == sum(m.work for m in ready)
        assert {*members} == {*ready, *router._away}
        masks: dict[int, int] = {}
        for member in members:
            for block in (*member.held._running, *member.held._idle):
                masks[block] = masks.get(block, 0) | member.bit
        assert masks == router._holders._masks


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 60))]
)
def test_it_is_that_which_looking_at_all_of_them_finds(seed):
    traffic = Traffic(seed, n=1 + seed % 12, room=64 + 20 * seed)
    for step in range(500):
        traffic.request()
        while traffic.running and traffic.draw.random() < 0.5:
            traffic.end()
        traffic.change()
        if not step % 100:
            traffic.check()
    while traffic.running:
        traffic.end()
    traffic.check()
    assert all(m.work == m.n_running == 0 for m in traffic.router.members)
    assert not any(m.held._running or m.held._promised for m in traffic.router.members)


def test_of_a_thousand_engines_few_are_looked_at():
    traffic = Traffic(0, n=1000, room=200)
    for _ in range(3000):
        traffic.request(is_checked=False)
        if len(traffic.running) > 2000:
            traffic.end()
    assert traffic.router.n_seen < 3000 * 80
