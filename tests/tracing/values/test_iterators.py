"""`iter` of a list known only at run time: `next` and loops take its items in turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from control_flow import agree, equal_or_refused
from tests_support import one_in

import sgc

REPLIES = ["a b c", "a", "", "a b", "c d e f g", "b b"]
VALUES = ['["x", 1]', "[]", '{"k": 2}', '"xy"', "null", "3", '[null, [1], "y", false]']


def pairs(xs: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    it = iter(xs)
    for one in it:
        yield one, next(it, None)


def in_pairs(xs: list[str]) -> Any:
    found = []
    for one, other in pairs(xs):
        if other is None:
            found.append(one + " alone")
            continue
        found.append(f"{one} and {other}")
    return found


def the_rest(xs: list[str]) -> Any:
    it = iter(xs)
    first = next(it, "none")
    found = [first]
    for x in it:
        found.append(x.upper())
        if x == "b":
            break
    for x in it:
        found.append(x + "!")
    return found, next(it, "over")


def by_hand(xs: list[str]) -> Any:
    it = iter(xs)
    n = 0
    while (x := next(it, None)) is not None:
        n += 1
        if x == "b":
            return n, next(it, "last")
    return n, "no b"


def two_of_one_list(xs: list[str]) -> Any:
    one, other = iter(xs), iter(xs)
    try:
        next(other)
        return [(next(one), next(other)), next(one), next(other, "-")]
    except StopIteration as error:
        return f"over {error}"


def an_alias(xs: list[str]) -> Any:
    it = iter(xs)
    other = it if len(xs) > 2 else iter(xs)
    next(it, "")
    return next(other, "none"), next(it, "none"), next(other, "none")


def of_itself(xs: list[str]) -> Any:
    it = iter(xs)
    return [x for x in it if x != next(it, "")], it is iter(it)


def while_it_grows(xs: list[str]) -> Any:
    own = list(xs)
    it = iter(own)
    next(it, "")
    own.append("new")
    return next(it, "none"), next(it, "none")


def as_a_list(xs: list[str]) -> Any:
    it = iter(xs)
    next(it, "")
    return list(it), [*it]


def in_a_tuple(xs: list[str]) -> Any:
    it = iter(xs)
    return list(zip(it, it, strict=False)), next(it, "")


EQUAL = (in_pairs, the_rest, by_hand, two_of_one_list, an_alias)
OTHERS = (of_itself, while_it_grows, as_a_list, in_a_tuple)


def program(body: Any) -> Any:
    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        found = body(s["a"].split())
        s += f"{found}" + sgc.gen("b", max_tokens=3)
        return found

    return shown


@pytest.mark.sweep
@pytest.mark.parametrize("body", EQUAL)
def test_items_are_taken_in_turn(body: Any) -> None:
    agree(program(body), REPLIES, q="x", n=20)


@pytest.mark.parametrize("body", one_in(4, OTHERS))
def test_others_are_equal_or_refused(body: Any) -> None:
    equal_or_refused(program(body), REPLIES)


def test_of_a_value_out_of_json() -> None:
    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        try:
            it = iter(json.loads(s["a"]))
            s += f"{next(it, 'none')},"
            for x in it:
                s += f"{x};"
        except TypeError as error:
            s += f"{error}"
        return None

    agree(shown, VALUES, q="x", n=24)


@pytest.mark.slow
def test_each_pair_asks_the_model() -> None:
    @sgc.function
    def shown(s, names: list[str], rounds: int):
        left = names
        for _ in range(rounds):
            kept = []
            for one, other in pairs(left):
                if other is None:
                    kept.append(one)
                    continue
                s += f"{one} or {other}? " + sgc.gen("a", max_tokens=3)
                kept.append(other if "b" in s["a"] else one)
            left = kept
        return left

    graph = agree(shown, REPLIES, names=["m", "n", "o", "p", "q"], rounds=2)
    agree(shown, REPLIES, graph=graph, names=["m", "n", "o"], rounds=3)
