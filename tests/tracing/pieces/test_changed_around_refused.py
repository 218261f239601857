"""Functions inside of a program that change what more than one variable holds, or what is older
than the program's run."""

# ruff: noqa: B006  (programs as people write them)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from around import WORDS, around
from control_flow import equal_or_refused
from tests_support import one_in

import sgc

NAMES = ["ab", "c", "x", "no"]


def putting():
    d = {}

    def put(k):
        d[k] = len(d)
        return dict(d)

    return put


def with_another_name(s, xs):
    m = {}
    alias = m

    def take(h):
        m[h] = 1

    for x in xs:
        take(x)
    return (m, alias, m is alias)


def held_by_a_list(s, xs):
    m = {}
    kept = [m]

    def take(h):
        m[h] = 1

    for x in xs:
        take(x)
    return (m, kept)


def of_a_function_that_has_ended(s, xs):
    put = putting()
    for x in xs:
        s += f"{put(x)}"
    return "done"


def also_a_default(s, xs):
    m = {}

    def take(h, d=m):
        d[h] = 1

    for x in xs:
        take(x)
    return m


def changed_while_gone_over(s, xs):
    m = {}

    def take(h):
        m[h] = 1

    for k in m:
        take(k + "x")
    for x in xs:
        take(x)
    try:
        for k in m:
            take(k + "x")
    except RuntimeError as e:
        s += str(e)
    return m


def with_a_name_inside(s, xs):
    m = {}

    def take(h):
        a = m
        m[h] = 1
        return len(a)

    return [take(x) for x in xs]


def held_by_an_object(s, xs):
    m = {}

    class Box:
        pass

    b = Box()
    b.m = m

    def take(h):
        m[h] = 1

    for x in xs:
        take(x)
    return (b.m, m)


def of_a_mapped_function(s, xs):
    m = {}

    @sgc.function
    def ask(s2, x: str):
        s2 += x + sgc.gen("z", max_tokens=2)
        m[x] = 1
        return x

    sgc.map(ask, xs)
    return m


def of_a_called_function(s, xs):
    m = {}

    @sgc.function
    def ask(s2, x: str):
        s2 += x
        m[x] = 1
        return x

    for x in xs:
        ask(x)
    return m


def a_part_with_a_name(s, xs):
    m = {"in": {}}
    inner = m["in"]

    def note(k):
        m["in"][k] = 1

    for x in xs:
        note(x)
    return (m, inner)


def beside_a_default_that_is_kept(s, xs):
    m = {}

    def note(k, seen=set()):
        if k in seen:
            return
        seen.add(k)
        m[k] = 1

    for x in xs:
        note(x)
    return m


def given_to_a_helper_inside(s, xs):
    m = {}

    def note(m, k):
        m[k] = 1

    def wrap(k):
        note(m, k)

    for x in xs:
        wrap(x)
    return m


REFUSED = (
    with_another_name,
    held_by_a_list,
    of_a_function_that_has_ended,
    also_a_default,
    changed_while_gone_over,
    with_a_name_inside,
    held_by_an_object,
    of_a_mapped_function,
    of_a_called_function,
    a_part_with_a_name,
    beside_a_default_that_is_kept,
    given_to_a_helper_inside,
)


@pytest.mark.parametrize("body", one_in(4, REFUSED))
def test_what_others_hold_is_refused(body: Callable[..., Any]) -> None:
    assert equal_or_refused(around(body), WORDS) == "refused"
