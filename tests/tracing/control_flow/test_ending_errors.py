"""Errors that end a program: their paths are made without a run for each, where nothing handles
them; where something may, also Python itself, they are run.
"""

from __future__ import annotations

import contextlib
from functools import reduce

import pytest
from control_flow import agree_saved, equal_or_refused

import sgc
from sgc.tracing.paths.exploration import Report
from sgc.tracing.tracer import trace

POOL = ("7", "x", "", '{"n": 3}', "[1, 2]", "1 2 3", "0", "-1", '{"n": "q"}')


def number_of(text: str) -> int:
    return int(text.strip())


class Items:
    """Goes by `__getitem__`, whose IndexError ends a loop."""

    def __init__(self, items):
        self.items = items

    def __getitem__(self, index):
        return self.items[index]


class Lazy:
    def __init__(self, text):
        self.text = text

    @property
    def word(self):
        return self.text.split()[1]


@sgc.function
def in_the_program(s, q: str):
    s += q + sgc.gen("a")
    n = int(s["a"])
    s += f"{n}" + sgc.gen("b")
    s += s["b"].split()[n]


@sgc.function
def in_a_helper(s, q: str):
    s += q + sgc.gen("a")
    s += f"{number_of(s['a'])}" + sgc.gen("b")
    s += f"{number_of(s['b'])}"


@sgc.function
def in_a_called_program(s, q: str):
    s += q
    inner = in_the_program(q)
    s += str(inner["b"])


@sgc.function
def in_a_comprehension(s, q: str):
    s += q + sgc.gen("a") + sgc.gen("b")
    s += f"{[number_of(text) for text in (s['a'], s['b'])]}"


@sgc.function
def handled_by_the_caller(s, q: str):
    s += q + sgc.gen("a")
    try:
        s += f"{number_of(s['a'])}"
    except ValueError as error:
        s += f"no: {error}"
    s += sgc.gen("b")


@sgc.function
def has_an_end(s, q: str):
    s += q + sgc.gen("a")
    try:
        n = number_of(s["a"])
    finally:
        s += "end" + sgc.gen("b")
    s += f"{n}"


@sgc.function
def suppressed(s, q: str):
    s += q + sgc.gen("a")
    with contextlib.suppress(ValueError):
        s += f"{number_of(s['a'])}"
    s += sgc.gen("b")


@sgc.function
def ends_a_loop_of_python(s, q: str):
    s += q + sgc.gen("a")
    for word in Items(s["a"].split()):
        s += word + ";"


@sgc.function
def in_a_generator(s, q: str):
    def numbers():
        for text in (s["a"], s["b"]):
            yield int(text)

    s += q + sgc.gen("a") + sgc.gen("b")
    s += f"{sum(numbers())}"


@sgc.function
def asked_by_getattr(s, q: str):
    s += q + sgc.gen("a")
    s += str(getattr(Lazy(s["a"]), "word", "none"))


@sgc.function
def by_a_library(s, q: str):
    s += q + sgc.gen("a") + sgc.gen("b")
    s += str(reduce(lambda n, text: n + number_of(text), (s["a"], s["b"]), 0))


@sgc.function
def told_by_a_child(s, q: str):
    s += q
    forks = s.fork(2)
    for fork in forks:
        fork += sgc.gen("a")
        fork += f"{number_of(fork['a'])}"
    forks.join()
    s += str(forks[0]["a"])


@sgc.function
def after_a_change(s, q: str):
    found = []
    s += q + sgc.gen("a")
    for word in s["a"].split():
        found.append(int(word))
        if len(found) > 2:
            break
    s += f"{found}" + sgc.gen("b")


WHOLE = [
    in_the_program, in_a_helper, in_a_called_program, in_a_comprehension, handled_by_the_caller,
    has_an_end, suppressed, told_by_a_child, after_a_change,
]  # fmt: skip
OTHERS = [in_a_generator, ends_a_loop_of_python, asked_by_getattr, by_a_library]


@pytest.mark.sweep
@pytest.mark.parametrize("program", WHOLE, ids=lambda each: each.name)
def test_they_end_the_program_as_in_python(program):
    agree_saved(program, POOL, n=24, q="x")


@pytest.mark.sweep
@pytest.mark.parametrize("program", OTHERS, ids=lambda each: each.name)
def test_where_python_may_handle_them_they_are_what_python_makes_of_them(program):
    equal_or_refused(program, POOL, n=24)


def n_runs(program: sgc.Function) -> int:
    report = Report()
    trace(program, report=report)
    return report.n_runs


def test_those_that_nothing_handles_take_no_runs():
    assert n_runs(in_the_program) == 1
    assert n_runs(in_a_helper) == 1
    assert n_runs(handled_by_the_caller) > 1
    assert n_runs(has_an_end) > 1
