"""The trials of a trace check: rounds, and rounds changed to reach an arm of a test that no trial
has reached, by replies that the test looks for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NamedTuple

from sgc.ir.analysis.dependencies import successors
from sgc.ir.graph import Graph
from sgc.tracing.checking.candidates import Candidates
from sgc.tracing.checking.hints import Hints, HintsOf
from sgc.tracing.checking.rounds import Draw, Round
from sgc.tracing.checking.scripted_arguments import Arguments

MAX_TRIES = 12  # for one arm
IN_A_ROW = 3  # tries, before another arm has its turn
MAX_BACK = 4  # requests before a test, one of which its value may come from


@dataclass(frozen=True, slots=True)
class Trial:
    """The inputs of both runs of a comparison.

    replies: pairs of a bound and a draw; a prompt gets a reply of the first draw whose bound is
    greater than its number of characters. tools: the draws of single tools, by name, in place of
    the first draw; keys: the keys of the dicts that tools return; is_round: whether the trial is
    not a changed trial.
    """

    arguments: Mapping[str, Any]
    replies: tuple[tuple[float, Draw], ...]
    tools: Mapping[str, Draw] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    is_round: bool = True

    @staticmethod
    def of(number: int, each: Round, given: Arguments) -> Trial:
        draw = Draw(number, each.replies)
        return Trial(given.of(number, each), ((math.inf, draw),), keys=given.keys)

    @property
    def first(self) -> Draw:
        return self.replies[0][1]

    def draw_for(self, n_chars: int) -> Draw:
        """The draw for a prompt of so many characters."""
        return next(draw for bound, draw in self.replies if n_chars < bound)

    def changed_from(self, n_chars: int, draw: Draw) -> Trial:
        """The same trial, with other replies for prompts of at least so many characters."""
        kept = [(bound, each) for bound, each in self.replies if bound < n_chars]
        if n_chars > 0:
            kept.append((n_chars, self.draw_for(n_chars - 1)))
        return replace(self, replies=(*kept, (math.inf, draw)))


class Arm(NamedTuple):
    """An edge from a block of a program to the next block."""

    program: str
    block: str
    target: str


@dataclass(slots=True)
class Walk:
    """The arms that one run takes. asked: the characters of each prompt, and the reply; decided:
    for each block, the number of requests made before its test was last decided."""

    asked: list[tuple[int, str]] = field(default_factory=list)
    taken: set[Arm] = field(default_factory=set)
    decided: dict[tuple[str, str], int] = field(default_factory=dict)

    def note(self, program: str, block: str, target: str) -> None:
        self.taken.add(Arm(program, block, target))
        self.decided[program, block] = len(self.asked)


class Search:
    """The arms that are left, and trials that may reach them."""

    def __init__(self, graph: Graph, arguments: Arguments, own: Sequence[str]) -> None:
        self._arguments, self._own, self._hints = arguments, own, HintsOf(graph)
        self.left = {
            Arm(each.name, block.name, target)
            for each in (graph, *graph.called)
            for block in each.blocks
            if block.nodes[-1].op in ("branch", "switch")
            for target in successors(block.nodes[-1])
        }
        self._tries: Counter[Arm] = Counter()
        self._reached: dict[tuple[str, str], tuple[Trial, Walk]] = {}

    def note(self, trial: Trial, walk: Walk) -> bool:
        """Notes the arms that a trial took; returns whether one of them is new."""
        is_new = not self.left.isdisjoint(walk.taken)
        self.left -= walk.taken
        for place in walk.decided:
            if is_new or place not in self._reached:
                self._reached[place] = trial, walk
        return is_new

    def next(self, number: int) -> Trial | None:
        """A trial for an arm whose test has been reached: among arms with few tries, the arm that
        was reached last. None if there is no such arm."""
        found = [
            arm
            for arm in sorted(self.left)
            if arm[:2] in self._reached and self._tries[arm] < MAX_TRIES
        ]
        if not found:
            return None
        order = {place: number for number, place in enumerate(self._reached)}
        arm = min(found, key=lambda arm: (self._tries[arm] // IN_A_ROW, -order[arm[:2]]))
        self._tries[arm] += 1
        return self._for(arm, number)

    def _for(self, arm: Arm, number: int) -> Trial:
        trial, walk = self._reached[arm[:2]]
        random = Random(number)
        hints = self._hints.of(arm.program, arm.block).beside(trial.arguments)
        n_chars, reply = _from(walk, walk.decided[arm[:2]], random)
        made = Candidates(hints, self._own, self._hints.keys, random, reply)
        draw = Draw(number, made.texts(self._tries[arm] - 1))
        if hints.tools:
            trial = replace(trial, tools={**trial.tools, **dict.fromkeys(hints.tools, draw)})
        if hints.arguments and (not hints.is_of_reply or random.random() < 0.5):
            trial = replace(trial, arguments=self._given(trial, hints, draw))
        if hints.is_of_reply:
            trial = trial.changed_from(n_chars, draw)
        return replace(trial, is_round=False)

    def _given(self, trial: Trial, hints: Hints, draw: Draw) -> Mapping[str, Any]:
        each = Round(draw.texts, draw.number, True, draw.texts)
        found = self._arguments.of(draw.number, each, hints)
        return {
            name: found[name] if name in hints.arguments else value
            for name, value in trial.arguments.items()
        }


def _from(walk: Walk, n_asked: int, random: Random) -> tuple[int, str]:
    """The first request before a test whose reply changes: the characters of its prompt, and its
    reply; sometimes 0 and an empty reply, so that all replies change."""
    before = walk.asked[:n_asked][-MAX_BACK:]
    return random.choice([(0, ""), *before, *before[-1:] * 2])
