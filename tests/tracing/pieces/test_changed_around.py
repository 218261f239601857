"""Functions inside of a program that change lists, dicts and the like of the function around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from around import WORDS, around
from control_flow import equal_or_refused

NAMES = ["ab", "c", "x", "no"]


def one_put(s, xs):
    m: dict[str, str] = {}

    def take(h, n):
        m[h] = n

    for x in xs:
        take(x, x.upper())
    return m


def put_and_looked_up(s, xs):
    m = {}

    def take(h, n):
        m[h] = n

    for x in xs:
        take(x, x.upper())
        s += "."
    for x in xs:
        if x not in m:
            continue
        s += m[x]
    return m


def one_deleted(s, xs):
    o = {n: n + "!" for n in NAMES}

    def drop(h):
        del o[h]

    for x in xs:
        if x in o:
            drop(x)
    return o


def seen_between_calls(s, xs):
    m = {}

    def take(h):
        m[h] = len(m)
        return "t"

    out = ""
    for x in xs:
        out += f"{sorted(m)}{take(x)}{sorted(m)}"
    return out


def seen_before(s, xs):
    seen = set()

    def new(x):
        if x in seen:
            return False
        seen.add(x)
        return True

    return [x for x in xs if new(x)]


def two_containers(s, xs):
    seen = set()
    out = []

    def new(x):
        if x in seen:
            return False
        seen.add(x)
        out.append(x)
        return True

    for x in xs:
        if new(x):
            s += x
    return (out, len(seen))


def through_another_helper(s, xs):
    m = {}

    def take(h):
        m[h] = m.get(h, 0) + 1

    def both(h):
        take(h)
        take(h.upper())

    for x in xs:
        both(x)
    return m


def also_set_anew(s, xs):
    m = {}

    def take(h):
        nonlocal m
        m[h] = 1
        if len(m) > 2:
            m = {}

    for x in xs:
        take(x)
    return m


def made_by_a_maker(s, xs):
    m = {}

    def mk():

        def take(h):
            m[h] = len(m)

        return take

    t = mk()
    for x in xs:
        t(x)
    return m


def of_each_call(s, xs):
    ms = []

    def run(k):
        m = {}

        def take(h):
            m[h] = k

        for x in xs:
            take(x)
        return m

    ms.append(run(1))
    ms.append(run(2))
    return ms


def a_count_that_may_fail(s, xs):
    m = dict.fromkeys(NAMES, 0)

    def take(h):
        m[h] += 1

    for x in xs:
        try:
            take(x)
        except KeyError as e:
            s += f"no {e}"
    return m


def while_it_is_gone_over(s, xs):
    m = {}

    def take(h):
        m[h] = 1

    for x in xs:
        for k in m:
            s += k
            if k == x:
                break
        take(x)
    return m


def with_its_docstring(s, xs):
    m = {}

    def take(h):
        """doc"""
        m[h] = take.__doc__

    for x in xs:
        take(x)
    return m


def two_functions_around(s, xs):
    m = {}

    def a():

        def b(k):
            m[k] = len(m)

        for x in xs:
            b(x)

    a()
    return m


def two_helpers(s, xs):
    m = {}

    def put(k):
        m[k] = 1

    def cut(k):
        m.pop(k, None)

    for x in xs:
        put(x)
        if len(x) > 2:
            cut(x)
    return m


EQUAL = (
    one_put,
    put_and_looked_up,
    one_deleted,
    seen_between_calls,
    seen_before,
    two_containers,
    through_another_helper,
    also_set_anew,
    made_by_a_maker,
    of_each_call,
    a_count_that_may_fail,
    while_it_is_gone_over,
    with_its_docstring,
    two_functions_around,
    two_helpers,
)


@pytest.mark.sweep
@pytest.mark.parametrize("body", EQUAL)
def test_what_it_changes_is_a_value_of_the_graph(body: Callable[..., Any]) -> None:
    assert equal_or_refused(around(body), WORDS, n=10) == "equal"
