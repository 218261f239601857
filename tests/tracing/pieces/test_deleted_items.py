"""`del d[k]` of what is known only at run time, also where its error is handled."""

# ruff: noqa: RUF051  (what is tested is `del`)

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from control_flow import equal_or_refused
from tests_support import one_in

import sgc

NAMES = ["ab", "c", "x", "no"]
POOL = (
    "", "a", "ab", "ab ab c", "c ab no x", "no yes no", "x x", "abd abc abd", "é ab É", "0 1 2",
    "c c c c x",
)  # fmt: skip


class Counted(dict):
    """Deleting does something first."""

    n = 0

    def __delitem__(self, key):
        self.n += 1
        super().__delitem__(key)


def of_known_keys(s, xs):
    left = {n: n + "!" for n in NAMES}
    for x in xs:
        if x in left:
            del left[x]
    return left


def between_texts(s, xs):
    left = {n: n + "!" for n in NAMES}
    for x in xs:
        s += "."
        if x in left:
            s += left[x]
            del left[x]
    return left


def of_keys_of_a_run(s, xs):
    left = {x: len(x) for x in xs}
    for x in xs:
        if x in left:
            del left[x]
            s += f"{len(left)}"
    return left


def one_that_may_be_missing(s, xs):
    left = {x: len(x) for x in xs}
    try:
        del left["ab"]
    except KeyError as error:
        s += f"no {error}"
    return left


def added_again(s, xs):
    left = {x: n for n, x in enumerate(xs)}
    for x in xs:
        del left[x]
        left[x] = 7
    return left, list(left)


def missing_inside(s, xs):
    left = {n: len(n) for n in NAMES}
    try:
        for x in xs:
            del left[x]
    except KeyError as error:
        s += f"no {error}"
    return left


def item_of_a_list(s, xs):
    left = [*xs, "z"]
    try:
        del left[2]
    except IndexError as error:
        s += str(error)
    return left


def slice_of_a_list(s, xs):
    left = [x.upper() for x in xs]
    del left[1:3]
    return left


def of_another_name(s, xs):
    left = {x: len(x) for x in xs}
    other = left
    if "ab" in left:
        del left["ab"]
    return left, other


def of_a_part(s, xs):
    left = {"in": {x: len(x) for x in xs}, "out": {}}
    try:
        del left["in"]["ab"]
    except KeyError:
        s += "no"
    return left


def of_what_another_holds(s, xs):
    left = {x: len(x) for x in xs}
    kept = [left]
    if "ab" in left:
        del left["ab"]
    return left, kept


def while_it_is_gone_over(s, xs):
    left = {x: len(x) for x in xs}
    for x in left:
        if x == "ab":
            del left[x]
    return left


def over_a_copy(s, xs):
    left = {x: len(x) for x in xs}
    for x in list(left):
        if "a" in x:
            del left[x]
    return left


def in_a_helper(s, xs):
    def drop(d, key):
        del d[key]

    left = {x: len(x) for x in xs}
    for x in set(xs):
        if x != "c":
            drop(left, x)
    return sorted(left)


def two_at_once(s, xs):
    left = {x: len(x) for x in xs}
    try:
        del left["ab"], left["c"]
    except KeyError as error:
        s += f"no {error}"
    return left


def whose_key_fails(s, xs):
    left = {x: len(x) for x in xs}
    try:
        del left[xs[1]]
    except (KeyError, IndexError) as error:
        s += f"{type(error).__name__}"
    return left


def of_a_defaultdict(s, xs):
    left = defaultdict(int)
    for x in xs:
        left[x] += 1
    try:
        del left["ab"]
    except KeyError:
        s += "no"
    return dict(left)


def whose_key_adds_another(s, xs):
    left = defaultdict(str)
    for x in xs:
        left[x] = "c"
    try:
        del left[left["ab"]]
    except KeyError:
        s += "no"
    return dict(left)


def of_an_own_class(s, xs):
    left = Counted()
    for x in xs:
        left[x] = 1
    try:
        del left["ab"]
    except KeyError:
        s += "no"
    return left.n, len(left)


def program(body: Callable[..., Any], is_handled: bool) -> Any:
    if not is_handled:

        @sgc.function
        def shown(s, q: str):
            s += q + sgc.gen("a", max_tokens=9)
            found = body(s, s["a"].split())
            s += f"{found}" + sgc.gen("b", max_tokens=3)
            return found

        return shown

    @sgc.function
    def handled(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        try:
            found = body(s, s["a"].split())
        except (KeyError, IndexError, RuntimeError) as error:
            found = type(error).__name__
        s += f"{found}" + sgc.gen("b", max_tokens=3)
        return found

    return handled


EQUAL = (
    of_known_keys, between_texts, of_keys_of_a_run, one_that_may_be_missing, added_again,
    missing_inside, item_of_a_list, slice_of_a_list, over_a_copy, whose_key_fails,
    of_another_name, of_what_another_holds, of_a_defaultdict,
)  # fmt: skip
REFUSED = (
    of_a_part, while_it_is_gone_over, in_a_helper, two_at_once, whose_key_adds_another,
    of_an_own_class,
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize(("body", "is_handled"), one_in(2, EQUAL, [True, False]))
def test_what_is_deleted_is_code(body: Callable[..., Any], is_handled: bool) -> None:
    assert equal_or_refused(program(body, is_handled), POOL, n=12) == "equal"


@pytest.mark.sweep
@pytest.mark.parametrize(("body", "is_handled"), one_in(2, REFUSED, [True, False]))
def test_what_is_not_at_once_is_refused(body: Callable[..., Any], is_handled: bool) -> None:
    assert equal_or_refused(program(body, is_handled), POOL) == "refused"
