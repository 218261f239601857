"""Functions inside of a program that change lists, dicts and the like of the function around, in
the ways that people call them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import pytest
from around import WORDS, around
from control_flow import equal_or_refused

import sgc

NAMES = ["ab", "c", "x", "no"]


def a_counter(s, xs):
    c = Counter()

    def note(k):
        c[k] += 1

    for x in xs:
        note(x)
    return c.most_common(2)


def a_deque(s, xs):
    q = deque(maxlen=2)

    def note(k):
        q.append(k)

    for x in xs:
        note(x)
        s += f"{list(q)}"
    return list(q)


def from_a_generator(s, xs):
    m = {}

    def note(k):
        m[k] = 1

    def gen():
        for x in xs:
            note(x)
            yield x

    out = []
    for x in gen():
        out.append((x, len(m)))
    return (out, m)


def and_then_an_error(s, xs):
    m = {}

    def note(k):
        m[k] = 1
        raise ValueError(k)

    for x in xs:
        try:
            note(x)
        except ValueError as e:
            s += f"{e}{len(m)}"
    return m


def called_out_of_a_list(s, xs):
    m = {}

    def note(k):
        m[k] = 1

    fs = [note]
    for x in xs:
        fs[0](x)
    return m


def called_by_a_generator_expression(s, xs):
    seen = set()

    def first(k):
        if k in seen:
            return ""
        seen.add(k)
        return k

    s += "".join(first(x) for x in xs)
    return len(seen)


def beside_a_number(s, xs):
    m = {}
    n = 0

    def note(k):
        nonlocal n
        n += 1
        m[k] = n

    for x in xs:
        note(x)
    return (m, n)


def of_a_variable_set_anew(s, xs):
    m = {}

    def note(k):
        m[k] = 1

    old = m
    m = {}
    for x in xs:
        note(x)
    return (m, old)


def set_anew_around(s, xs):
    m = {}

    def note(k):
        m[k] = 1

    for x in xs:
        note(x)
        if len(m) == 2:
            m = {}
    return m


def what_it_returns_is_changed(s, xs):
    m = {}

    def note(k):
        m[k] = 1
        return m

    a = None
    for x in xs:
        a = note(x)
    if a is not None:
        a["z"] = 2
    return (m, a)


def whose_copies_are_kept(s, xs):
    m = {}
    hist = []

    def note(k):
        m[k] = 1
        hist.append(dict(m))

    for x in xs:
        note(x)
    return hist


def of_a_fork(s, xs):
    m = {}

    def note(k):
        m[k] = 1

    f = s.fork(2)
    for _i, g in enumerate(f):
        g += "x" + sgc.gen("t", max_tokens=2)
        note(g["t"])
    f.join()
    return m


def by_a_method(s, xs):
    m = {}

    class K:
        def note(self, k):
            m[k] = 1

    o = K()
    for x in xs:
        o.note(x)
    return m


def that_ends_a_loop(s, xs):
    m = {}

    def note(k):
        m[k] = 1

    i = 0
    while i < len(xs) and len(m) < 2:
        note(xs[i])
        i += 1
    return (m, i)


def by_two_of_a_maker(s, xs):
    m = {}

    def make(tag):

        def note(k):
            m[k] = tag

        return note

    a, b = (make("a"), make("b"))
    for x in xs:
        (a if len(x) > 1 else b)(x)
    return m


EQUAL = (
    a_counter,
    a_deque,
    from_a_generator,
    and_then_an_error,
    called_out_of_a_list,
    called_by_a_generator_expression,
    beside_a_number,
    of_a_variable_set_anew,
    set_anew_around,
    what_it_returns_is_changed,
    whose_copies_are_kept,
    of_a_fork,
    by_a_method,
    that_ends_a_loop,
    by_two_of_a_maker,
)


@pytest.mark.sweep
@pytest.mark.parametrize("body", EQUAL)
def test_what_it_changes_is_a_value_of_the_graph(body: Callable[..., Any]) -> None:
    assert equal_or_refused(around(body), WORDS, n=10) == "equal"
