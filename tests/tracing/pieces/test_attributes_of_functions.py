"""Attributes of functions, the program's own and Python's, are what they are, or are refused."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from control_flow import equal_or_refused
from tests_support import one_in

import sgc
from sgc.errors import ProgramError
from sgc.runtime.executor.code.run import run_code
from sgc.tracing.watch.reads import reads_of

REPLIES = ("a b", "b", "", "7 8 9")


def size(text: str) -> int:
    return len(textwrap.fill(text, 4))  # no op: it becomes code


def counts(text: str) -> Any:
    counts.n += 1
    return size(text) + counts.n


counts.n = 0


def reads(text: str) -> Any:
    return size(text) + reads.limit


reads.limit = 3


def reads_anothers(text: str) -> Any:
    return reads(text) + reads.limit


def asks(text: str) -> Any:
    return hasattr(reads, "limit"), hasattr(reads, "none"), getattr(reads, "limit", 1) + size(text)


def handles(text: str) -> Any:
    try:
        return reads.limit + size(text)
    except AttributeError:
        return size(text)


def sets(text: str) -> Any:
    sets.last = size(text)
    return sets.last


def sets_by_name(text: str) -> Any:
    name = "last"
    setattr(sets_by_name, name, size(text))
    return sets_by_name.last


def collects(text: str) -> Any:
    collects.seen.append(size(text))
    return len(collects.seen)


collects.seen = []


def counted(function: Callable[[str], Any]) -> Any:
    @functools.wraps(function)
    def call(text: str) -> Any:
        call.n_calls += 1
        return function(text)

    call.n_calls = 0
    return call


@counted
def decorated(text: str) -> Any:
    return size(text)


def of_its_own(text: str) -> Any:
    def inner(word: str) -> int:
        inner.n += 1
        return size(word) + inner.n

    inner.n = 0
    return [inner(word) for word in text.split()], inner.n


class Kind:
    def method(self, text: str) -> int:
        return size(text) + Kind.method.limit

    def counts(self, text: str) -> int:
        self.counts.__func__.n += 1
        return size(text) + self.counts.n


Kind.method.limit = 3
Kind.counts.n = 0


def of_a_method(text: str) -> Any:
    return Kind().method(text)


def of_a_method_that_counts(text: str) -> Any:
    return Kind().counts(text), Kind.counts.n


def names(text: str) -> Any:
    functions = [reads, len, sum, text.upper, [].append, str, Kind]
    return [each.__name__ for each in functions], size(text)


EQUAL = (reads, reads_anothers, asks, handles, of_its_own, of_a_method, names)
REFUSED = (counts, sets, sets_by_name, collects, decorated, of_a_method_that_counts)


def program(body: Callable[[str], Any]) -> Any:
    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("x", max_tokens=4)
        return body(s["x"]), body("k")

    return shown


@pytest.mark.parametrize("body", one_in(3, EQUAL))
def test_they_are_equal(body: Callable[[str], Any]) -> None:
    assert equal_or_refused(program(body), REPLIES) == "equal"


@pytest.mark.parametrize("body", one_in(3, REFUSED))
def test_they_may_not_change(body: Callable[[str], Any]) -> None:
    before = dict(vars(body))
    assert equal_or_refused(program(body), REPLIES) == "refused"
    if body is not sets_by_name:  # what `setattr` has set is not undone
        assert dict(vars(body)) == before
    counts.n, Kind.counts.n, collects.seen[:] = 0, 0, []


@pytest.mark.parametrize("use", ["f.n", "getattr(f, 'n', 1)", "hasattr(f, 'n')", "g.n", "C.m.n"])
def test_a_stand_in_in_code_has_none(use: str) -> None:
    code = (
        "def f(): return 1\n"
        "class C:\n    def m(self): return 1\n"
        "def piece():\n    g = lambda: 1\n"
        f"    try: return {use}\n    except AttributeError: return 2"
    )
    with pytest.raises(ProgramError, match="not allowed"):
        run_code(code, ())


def test_the_jit_sees_that_they_change() -> None:
    function = program(reads)
    before, why = reads_of(function)
    assert not why
    reads.limit += 1
    try:
        assert reads_of(function)[0] != before
    finally:
        reads.limit -= 1
