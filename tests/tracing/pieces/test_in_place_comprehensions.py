"""What comprehensions over values of the graph add to containers in place."""

from __future__ import annotations

from typing import Any

from control_flow import agree_or_refuse, equal_or_refused
from tracing.pieces.test_in_place_operators import REPLIES, program

from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.tracing.tracer import trace


def with_constants(s: Any) -> Any:
    kinds = dict(enumerate(s["x"].split()))
    packing = {"a hat" for each in kinds.values() if each == "b"}
    packing |= {"boots" for each in kinds.values() if each in ("a", "9")}
    packing |= {f"{n} nights" for n in kinds if n > 1}
    return sorted(packing)


def with_lists_of_others(s: Any) -> Any:
    kinds = {each: [each] for each in s["x"].split()}
    kept = [["p"]]
    kept += [each for each in kinds.values() if each != ["b"]]
    kept[-1].append("q")
    return kept, kinds


def test_constants_and_texts_that_a_comprehension_adds() -> None:
    assert equal_or_refused(program(with_constants), REPLIES) == "equal"


def test_lists_of_others_that_a_comprehension_adds() -> None:
    function = program(with_lists_of_others)
    compiled = Program(optimize(trace(function, is_full=True), 1))
    agree_or_refuse(function, compiled, REPLIES, n=8)
