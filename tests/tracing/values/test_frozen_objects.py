"""Objects whose attributes are never set, in several lists: code that changes one of these changes
no such object.
"""

from __future__ import annotations

import heapq
import math
from contextlib import nullcontext
from dataclasses import dataclass, field

import pytest
from control_flow import agree_saved, equal_or_refused

import sgc
from sgc.core.stops import TraceStop
from sgc.core.symbols import Symbol
from sgc.ir.types import JSON
from sgc.tracing.kinds.held import Holdings

POOL = ("1", "end", "7", "3 end", "")


@dataclass(frozen=True)
class Beam:
    words: tuple[str, ...] = ()
    score: float = 0.0

    def extend(self, word: str, points: int) -> Beam:
        return Beam((*self.words, word), self.score + math.log(points))

    def rank(self) -> float:
        return self.score / max(1, len(self.words))


@pytest.mark.slow
def test_an_object_in_a_list_that_code_changes_is_the_same_in_others():
    @sgc.function
    def program(s, opening: str, steps: int = 2):
        beams = [Beam()]
        finished = []
        for _ in range(steps):
            pool = []
            for beam in beams:
                s += opening + sgc.gen("word", max_tokens=4)
                for word in s["word"].split():
                    if word == "end":
                        finished.append(beam)
                    else:
                        pool.append(beam.extend(word, len(word)))
            if not pool:
                break
            beams = heapq.nlargest(2, pool, key=Beam.rank)
        best = max(finished + beams, key=Beam.rank)
        return " ".join(best.words), len(finished)

    agree_saved(program, POOL, opening="x")


@dataclass(frozen=True)
class Holder:
    notes: list[str] = field(default_factory=list)


def test_a_list_in_such_an_object_may_change():
    @sgc.function
    def program(s, q: str):
        holder = Holder()
        kept: list[Holder] = []
        for x in ("a", "b"):
            s += x + sgc.gen("n", max_tokens=3)
            kept.append(holder)
            if s["n"] == "7":
                holder.notes.append(x)
        return [len(each.notes) for each in kept]

    assert equal_or_refused(program, POOL) == "equal"


@pytest.mark.parametrize(("value", "is_old"), [(Beam(("a",), 1.5), False), (Holder(["a"]), True)])
def test_code_that_changes_a_list_changes_what_is_in_it_if_that_can_change(value, is_old):
    held, symbol = Holdings(), Symbol("v", JSON)
    held.hold(symbol, [value])
    held.note_changed([value])
    with pytest.raises(TraceStop) if is_old else nullcontext():
        held.refuse_old([symbol.name])
