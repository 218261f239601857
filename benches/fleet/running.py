"""Programs on simulated engines, by a policy: a virtual clock."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from programs_of_load import Program

from fleet.policies import Policy
from fleet.simulated import BLOCK, Engine, Request


@dataclass
class Outcome:
    """times_s: of each program; hits: the share of prompt tokens found cached.

    seconds, n_ended and busy (each engine's time in steps) are of the time until the last program
    began: until then the fleet was full."""

    times_s: list[float]
    hits: float
    seconds: float
    n_ended: int
    busy: list[float]


class _Live:
    """A program that runs: its calls' prompts so far, and what has ended."""

    def __init__(self, program: Program, keys: itertools.count[int], at: float) -> None:
        self.program, self.keys, self.at = program, keys, at
        self.whole: list[tuple[int, ...]] = [()] * len(program.calls)
        self.left = [len(call.after) for call in program.calls]
        self.n_left = len(program.calls)
        beginning = program.beginning
        n_shared = len(beginning) // BLOCK
        self.beginning = tuple(hash(beginning[: (n + 1) * BLOCK]) for n in range(n_shared))

    def request(self, number: int) -> Request:
        call = self.program.calls[number]
        base = self.beginning if call.base is None else self.whole[call.base]
        prompt = (*base, *self._fresh(call.n_new))
        request = Request(prompt, self._fresh(call.n_out), call.n_out)
        self.whole[number] = (*prompt, *request.made)
        return request

    def _fresh(self, n_tokens: int) -> tuple[int, ...]:
        return tuple(itertools.islice(self.keys, math.ceil(n_tokens / BLOCK)))


def run(
    programs: Sequence[Program], engines: Sequence[Engine], policy: Policy, at_once: int
) -> Outcome:
    """Runs all programs; at_once: so many run at a time as others end, 0: each at its own time."""
    return _Run(engines, policy, programs, at_once).outcome()


class _Run:
    def __init__(
        self, engines: Sequence[Engine], policy: Policy, programs: Sequence[Program], at_once: int
    ) -> None:
        self.engines, self.policy = engines, policy
        self.keys, self.order = itertools.count(1), itertools.count()
        self.events: list[tuple[float, int, str, object]] = []
        self.notes: dict[int, tuple[_Live, int, object]] = {}
        self.left = iter(programs)
        self.is_closed = bool(at_once)
        self.times: list[float] = []
        self.n_left, self.full = len(programs), (0.0, 0, [0.0])
        self.n_prompt = self.n_cached = 0
        self.now = 0.0
        for program in itertools.islice(self.left, at_once) if at_once else programs:
            self._later(0.0 if at_once else program.at_s, "program", program)

    def _later(self, at: float, what: str, which: object) -> None:
        heapq.heappush(self.events, (at, next(self.order), what, which))

    def outcome(self) -> Outcome:
        while self.events:
            self.now, _, what, which = heapq.heappop(self.events)
            getattr(self, f"_on_{what}")(which)
        return Outcome(self.times, self.n_cached / self.n_prompt, *self.full)

    def _on_program(self, program: Program) -> None:
        self.n_left -= 1
        if not self.n_left:
            self.full = (self.now, len(self.times), [each.busy_s for each in self.engines])
        live = _Live(program, self.keys, self.now)
        for number, left in enumerate(live.left):
            if not left:
                self._on_call((live, number))

    def _on_call(self, which: tuple[_Live, int]) -> None:
        live, number = which
        request = live.request(number)
        expected = live.program.calls[number].n_expected
        at, note = self.policy.send(request.blocks, expected)
        self.notes[id(request)] = (live, number, note)
        engine = self.engines[at]
        engine.ask(request, self.now)
        self._watch(engine)

    def _watch(self, engine: Engine) -> None:
        if engine.ends_at < math.inf:
            self._later(engine.ends_at, "step", (engine, engine.version))

    def _on_step(self, which: tuple[Engine, int]) -> None:
        engine, version = which
        if version != engine.version:
            return
        for request in engine.end():
            live, number, note = self.notes.pop(id(request))
            self.n_prompt += len(request.blocks)
            self.n_cached += request.n_cached
            self.policy.done(note, request.n_cached)
            self._ended(live, number)
        self._watch(engine)

    def _ended(self, live: _Live, number: int) -> None:
        live.n_left -= 1
        for later, call in enumerate(live.program.calls):
            if number in call.after:
                live.left[later] -= 1
                if not live.left[later]:
                    self._later(self.now + call.wait_s, "call", (live, later))
        if not live.n_left:
            self.times.append(self.now - live.at)
            following = next(self.left, None) if self.is_closed else None
            if following is not None:
                self._later(self.now, "program", following)
