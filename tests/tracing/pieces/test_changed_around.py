"""Functions inside of a program that change lists, dicts and the like of the function around."""

# ruff: noqa: B006  (programs as people write them)

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import pytest
from around import around
from control_flow import equal_or_refused

import sgc

NAMES = ["ab", "c", "x", "no"]
POOL = (
    "", "a", "ab ab c", "abd abc abd x", "no yes no", "bomb poison", "3 4", "c c c x ab",
    "é e\u0301 É",
)  # fmt: skip


def putting():
    d = {}

    def put(k):
        d[k] = len(d)
        return dict(d)

    return put


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


@pytest.mark.parametrize("body", EQUAL)
def test_what_it_changes_is_a_value_of_the_graph(body: Callable[..., Any]) -> None:
    assert equal_or_refused(around(body), POOL, n=10) == "equal"


@pytest.mark.parametrize("body", REFUSED)
def test_what_others_hold_is_refused(body: Callable[..., Any]) -> None:
    assert equal_or_refused(around(body), POOL) == "refused"
