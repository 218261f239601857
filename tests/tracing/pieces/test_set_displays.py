"""Sets of texts that a module writes out, beside sets known only at run time: their order is the
interpreter's where it follows from the source, and is refused elsewhere."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from around import around
from control_flow import equal_or_refused

from sgc.tracing.code.set_displays import written_alike
from sgc.tracing.kinds.sets import order_of_display_seen

POOL = (
    "", "a", "bomb", "bomb poison", "poison bomb x", "a ab c", "x c ab a y", "ab ab", "the of a an",
    "Bomb POISON poison.", "é ß SS straße", "no yes no",
)  # fmt: skip

BANNED = {"bomb", "poison"}
STOP = set(["a", "an", "the", "of", "ab", "c"])  # noqa: C405
FROZEN = frozenset(("a", "ab", "c", "x"))
ACCENTS: set[str] = {"é", "ß"}
NONE: set[str] = set()
LONG = {"a", "ab", "bomb", "c", "no", "of", "poison", "the", "x", "yes"}
ADDED = {"ab", "c"}
ADDED.add("x")
ALIAS = {"a", "c"}
ALIAS_2 = ALIAS
ALIAS_2.add("x")
GROWN = {"no", "yes"}
TWICE = {"a", "c"}
TWICE = {"c", "a"}
BY_A_LOOP = {"c", "a"}
for BY_A_LOOP in ({"a", "c"}, {"c", "ab"}):  # noqa: B007
    pass


def in_a_list(s, xs):
    return list({x.strip(".").lower() for x in xs} & BANNED)


def by_operators(s, xs):
    w = set(xs)
    return list(w & STOP), list(STOP & w), list(w | STOP), list(w ^ STOP), list(STOP - w)


def compared(s, xs):
    w = set(xs)
    return w < STOP, w <= STOP, w == BANNED, w > BANNED, w >= LONG, w != LONG, bool(w & LONG)


def frozen(s, xs):
    return list(frozenset(xs) & FROZEN), list(FROZEN | set(xs))


def by_its_truth(s, xs):
    w = set(xs)
    if w & BANNED:
        s += "Refused: " + ", ".join(sorted(w & BANNED))
        return "refused", list(w & BANNED)
    return "ok", [*xs]


def another_name(s, xs):
    w = set(xs)
    v = w
    w = w | BANNED
    return list(w), list(v)


def inside(known, words):
    return [*(known | words)]


def in_a_helper(s, xs):
    return inside(BANNED, set(xs)), inside(set(xs), BANNED)


def in_try(s, xs):
    try:
        w = set(xs)
        w.remove("bomb")
        return list(w | BANNED)
    except KeyError as error:
        return f"no {error}"


def accents(s, xs):
    return list(ACCENTS & {x.lower() for x in xs}), list(ACCENTS | set(xs))


def empty(s, xs):
    return list(NONE | set(xs)), NONE & set(xs), set(xs) == NONE


def shown(s, xs):
    return str(BANNED & set(xs)), f"{STOP & set(xs)!r}", ", ".join(BANNED | set(xs))


def gone_over(s, xs):
    out = []
    for w in STOP & set(xs):
        out.append(w)
        s += w
    return out, {w: n for n, w in enumerate(BANNED | set(xs))}


def by_methods(s, xs):
    return list(BANNED.union(xs, STOP)), list(STOP.intersection(xs)), list(STOP.difference(xs))


def by_keys(s, xs):
    w = BANNED | set(xs)
    return (
        max(w, key=len),
        sorted(w, key=len),
        next(iter(w)),
        sum(n * len(x) for n, x in enumerate(w)),
    )


def beside_a_local(s, xs):
    def inner():
        BANNED = {"other"}
        return len(BANNED)

    return inner(), list(BANNED | set(xs))


def of_long_ones(s, xs):
    w = set(xs)
    return sorted(w & LONG), len(LONG | w), w <= LONG, [x for x in xs if x in LONG], w - LONG


def of_a_long_one(s, xs):
    return list(LONG | set(xs))


def of_one_added_to(s, xs):
    return list(ADDED | set(xs))


def of_one_set_twice(s, xs):
    return list(TWICE | set(xs))


def of_one_set_by_a_loop(s, xs):
    return list(BY_A_LOOP | set(xs))


def of_one_with_an_alias(s, xs):
    return list(ALIAS | set(xs))


def of_a_default(s, xs, known={"ab", "x"}):  # noqa: B006
    return list(known & set(xs))


def of_a_variable(s, xs):
    known = {"bomb", "poison"}
    return list(known & set(xs))


def of_one_that_grows(s, xs):
    for x in xs:
        GROWN.add(x)
    return list(GROWN & set(xs))


EQUAL = (
    in_a_list, by_operators, compared, frozen, by_its_truth, another_name, in_a_helper, in_try,
    accents, empty, shown, gone_over, by_methods, by_keys, beside_a_local, of_long_ones,
)  # fmt: skip
REFUSED = (
    of_a_long_one, of_one_added_to, of_one_set_twice, of_one_set_by_a_loop, of_a_default,
    of_a_variable, of_one_that_grows,
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("body", EQUAL)
def test_the_order_is_that_of_the_interpreter(body: Callable[..., Any]) -> None:
    assert equal_or_refused(around(body), POOL, n=12) == "equal"


@pytest.mark.sweep
@pytest.mark.parametrize("body", REFUSED)
def test_another_order_is_refused(body: Callable[..., Any]) -> None:
    assert equal_or_refused(around(body), POOL) == "refused"


def test_a_set_with_another_name_has_its_order_or_is_refused() -> None:
    equal_or_refused(around(of_one_with_an_alias), POOL)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("BANNED", "{'bomb', 'poison'}"),
        ("STOP", "set(['a', 'an', 'the', 'of', 'ab', 'c'])"),
        ("FROZEN", "frozenset(['a', 'ab', 'c', 'x'])"),
        ("ACCENTS", "{'é', 'ß'}"),
        ("LONG", ""), ("ADDED", ""), ("TWICE", ""), ("NONE", ""), ("ALIAS", ""), ("POOL", ""),
    ],
)  # fmt: skip
def test_what_is_written_is_the_same_in_each_process(name: str, text: str) -> None:
    assert written_alike(name, globals()[name], globals()) == text


# -- displays inside of code ----------------------------------------------------------------------


def of_a_display(text):
    return [w for w in {"ab", "b", "c", "no", "yes", "x1", "abd", "poison", "bomb"} if w in text]


def of_a_local_display(text):
    own = {"ab", "b", "c", "no", "yes", "x1", "abd", "poison", "bomb"}
    return [w for w in own if w in text]


def of_its_members(text):
    own = {"ab", "b", "c", "no", "yes", "x1", "abd", "poison", "bomb"}
    return [w for w in text.split() if w in own], sorted(own - {*text.split()}), len(own)


def show(s, text):
    return sorted(of_a_display(text), key=len), of_a_display(text)


def show_local(s, text):
    return sorted(of_a_local_display(text), key=len), of_a_local_display(text)


def show_members(s, text):
    return of_its_members(text)


def over_two(s, text):
    return sorted([w for w in {"c", "ab"} if w in text], key=len)


def is_never_another(n: int) -> None:
    """Whether none of the programs sees another order; by its number, as hashes differ."""
    replies = ("ab b c no yes x1 abd poison bomb", "no yes", "bomb poison abd", "")
    for body in (show, show_local, show_members, over_two)[n:]:
        equal_or_refused(around(body, gets_text=True), replies, n=4)


@pytest.mark.parametrize("n", [3, pytest.param(0, marks=pytest.mark.slow)])
def test_displays_of_texts_have_no_other_order(n: int) -> None:
    code = f"from {__name__} import is_never_another; is_never_another({n})"
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    env = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": path}  # of these texts, two orders
    subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True)


def test_members_of_a_display_are_code() -> None:
    assert equal_or_refused(around(show_members, gets_text=True), ("ab no", "x b", "")) == "equal"


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("code", "is_seen"),
    [
        ("x = {'a', 'b', 'c'}\nx in y, z in x, sorted(x - y), len(x)", False),
        ("x = {'a', 'b', 'c'}\n[*x]", True),
        ("x: set[str] = {'a', 'b', 'c'}\ny = x", False),
        ("x: set[str] = {'a', 'b', 'c'}\ngiven = x", True),
        ("x = {'a', 'b', 'c'}\ny = x\n[*y]", True),
        ("x = y, z = {'a', 'b', 'c'}", True),
        ("x = {'a', 'b'}\n[*x]", False),
        ("x = {'a', 'b', f()}\n[*x]", False),
        ("for x in {'a', 'b'}: pass", True),
        ("[x for x in {'a', 'b'}]", True),
        ("any(x in y for x in {'a', 'b', 'c'})", False),
        ("f({'a', 'b', 'c'})", True),
        ("x in {'a', 'b', 'c'}, y - {'a', 'b', 'c'}", False),
        ("list({'a', 'b', 'c'} & x)", True),
        ("sorted({'a', 'b', 'c'} & x)", False),
        ("lambda: {'a', 'b', 'c'}", True),
        ("given = {'a', 'b', 'c'}", True),
        ("given = y | {'a', 'b', 'c'}", True),
        ("x = {'a', 'b', 'c'} & y\nsorted(x) if x else z", False),
        ("x = {'a', 'b', 'c'} & y\n', '.join(x)", True),
        ("x = z - ({'a', 'b', 'c'} | y)\n[*x]", False),
        ("x = ({'a', 'b', 'c'} | y) - z\nw = x\n[*w]", True),
    ],
)
def test_where_the_order_of_a_display_is_seen(code: str, is_seen: bool) -> None:
    assert order_of_display_seen([ast.parse(code)], {"given"}) is is_seen
