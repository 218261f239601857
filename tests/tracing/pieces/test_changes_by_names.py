"""Code that changes a constant, or what it is given, by a function of another name or a method
that no syntax names: never another result without an error.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import insort
from collections import Counter
from collections.abc import Callable
from functools import partial
from heapq import heappush as push
from typing import Any

import pytest
from control_flow import REFUSALS, agree, outcome, replying
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace

KNOWN = ["k"]


def by_another_name(xs: list[str]) -> None:
    push(KNOWN, "a")


def by_a_variable(xs: list[str]) -> None:
    of = heapq.heappush
    of(KNOWN, "a")


def by_a_partial_function(xs: list[str]) -> None:
    partial(heapq.heappush, KNOWN)("a")


def by_a_function_that_calls_it(xs: list[str]) -> None:
    list(itertools.starmap(insort, [(KNOWN, "b")]))


def by_a_made_name(xs: list[str]) -> None:
    getattr(KNOWN, "app" + "end")("z")


def by_getattr_of_another_name(xs: list[str]) -> None:
    of = getattr
    of(KNOWN, "append")("z")


def what_it_is_given(xs: list[str]) -> None:
    of = insort
    of(xs, "b")


CHANGING = (
    by_another_name, by_a_variable, by_a_partial_function, by_a_function_that_calls_it,
    by_a_made_name, by_getattr_of_another_name, what_it_is_given,
)  # fmt: skip


@pytest.mark.parametrize("change", one_in(3, CHANGING), ids=lambda change: change.__name__)
def test_a_change_is_an_error_or_refused(change: Callable[[Any], Any]) -> None:
    @sgc.function
    def program(s: Any, q: str) -> Any:
        s += q + sgc.gen("a", max_tokens=4)
        xs = [s["a"]]
        counted = Counter(s["a"].split()).most_common(1), change(xs)
        return counted, xs, [*KNOWN]

    try:
        compiled = Program(optimize(trace(program, is_full=True), 1))
    except TraceError:
        assert KNOWN == ["k"]
        return
    runs = (each.run_once for each in (program, compiled))
    wanted, found = (
        outcome(partial(run, {"q": "x"}, RunOptions(seed=1), replying(1, ("a b",)))) for run in runs
    )
    KNOWN[:] = ["k"]
    assert found in REFUSALS or found == wanted


def own(xs: list[str]) -> list[str]:
    return xs


def of_a_parameter(xs: list[str], list: Any = own) -> int:
    ys = list(xs)
    ys.append("z")
    return len(ys)


def of_an_inner_function(xs: list[str]) -> int:
    def sorted(xs: Any) -> Any:
        return xs

    ys = sorted(xs)
    ys.append("z")
    return len(ys)


def of_a_loop(xs: list[str]) -> int:
    ys = []
    for list in [own]:
        ys = list(xs)
        ys.append("z")
    return len(ys)


@pytest.mark.parametrize("made", [of_a_parameter, of_an_inner_function, of_a_loop])
def test_a_name_of_pythons_that_is_a_variable(made: Callable[[Any], Any]) -> None:
    @sgc.function
    def program(s: Any, q: str) -> Any:
        s += q + sgc.gen("a", max_tokens=4)
        xs = [s["a"]]
        counted = Counter(s["a"].split()).most_common(1), made(xs)
        return counted, xs

    agree(program, ("a b", "b", ""), n=3, q="x")
