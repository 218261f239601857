"""Paths merge where variables hold equal objects of the standard library, and else stay apart."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from functools import partial
from random import Random
from typing import Any, NamedTuple

import pytest
from control_flow import agree

import sgc
from sgc.errors import TraceError
from sgc.tracing.tracer import trace

REPLIES = ["yes", "no", "a", "b,c", ""]


class Pair(NamedTuple):
    left: str
    right: int


def joined(before: str, after: str) -> str:
    return before + after


OBJECTS = {
    "counter": lambda: Counter("aab"),
    "defaultdict": lambda: defaultdict(list, a=["x"]),
    "ordered": lambda: OrderedDict(a=1, b=2),
    "deque": lambda: deque(["x", "y"], maxlen=3),
    "partial": lambda: partial(joined, "x"),
    "random": lambda: Random(7),
    "named": lambda: Pair("x", 1),
}
CHANGES: dict[str, Any] = {
    "counter": lambda held: held.update("b"),
    "defaultdict": lambda held: held["a"].append("y"),
    "ordered": lambda held: held.move_to_end("a"),
    "deque": lambda held: held.append("z"),
    "partial": lambda held: held.keywords.update(after="z"),
    "random": lambda held: held.random(),
}
SHOWN: dict[str, Any] = {
    "partial": lambda held: str(held.keywords),
    "random": lambda held: str(held.random()),
}


@pytest.mark.sweep
@pytest.mark.parametrize("kind", OBJECTS)
def test_a_loop_is_a_loop(kind: str) -> None:
    @sgc.function
    def program(s, q: str):
        held = OBJECTS[kind]()
        for _ in range(30):
            s += "?" + sgc.gen("x", max_tokens=4)
            if s["x"] == "no":
                break
        s += SHOWN.get(kind, str)(held)

    assert agree(program, REPLIES, q="x").n_nodes < 30


@pytest.mark.sweep
@pytest.mark.parametrize("kind", CHANGES)
def test_paths_that_changed_it(kind: str) -> None:
    @sgc.function
    def program(s, q: str):
        held = OBJECTS[kind]()
        for _ in range(3):
            s += "?" + sgc.gen("x", max_tokens=4)
            if s["x"] == "no":
                CHANGES[kind](held)
        s += SHOWN.get(kind, str)(held)

    agree(program, REPLIES, q="x")


def test_what_a_deque_or_counter_holds_is_widened() -> None:
    @sgc.function
    def program(s, q: str):
        last, n = deque([q], maxlen=1), Counter(a=0)
        for _ in range(30):
            s += "?" + sgc.gen("x", max_tokens=4)
            last[0] = s["x"]
            n["a"] += 1
            if s["x"] == "no":
                break
        s += last[0] + str(n["a"])

    assert agree(program, REPLIES, q="x").n_nodes < 40


OUTSIDE = Random(3)


@pytest.mark.parametrize("make", [Random, lambda: Random(None), lambda: OUTSIDE])
def test_draws_that_are_others_in_each_run_are_refused(make: Any) -> None:
    @sgc.function
    def program(s, q: str):
        s += q + str(make().random())

    with pytest.raises(TraceError, match="draws a random number"):
        trace(program)


def test_a_generator_from_outside_is_not_the_programs() -> None:
    @sgc.function
    def program(s, q: str):
        OUTSIDE.seed(5)
        s += q + str(OUTSIDE.random())

    with pytest.raises(TraceError, match="draws a random number"):
        trace(program)


def test_a_generator_that_loses_its_seed() -> None:
    @sgc.function
    def program(s, q: str):
        made = Random(7)
        made.seed()
        s += q + str(made.random())

    with pytest.raises(TraceError, match="draws a random number"):
        trace(program)


def test_draws_with_a_seed_are_the_interpreters() -> None:
    @sgc.function
    def program(s, q: str):
        made = Random(7)
        words = ["a", "b", q, "d"]
        made.shuffle(words)
        s += " ".join(words) + sgc.gen("x", max_tokens=4)
        if s["x"] == "no":
            made.seed("other")
        s += made.choice(words) + str(made.randint(1, 9))

    agree(program, REPLIES, q="x")


def test_paths_with_keys_that_are_decided_stay_apart() -> None:
    """A choice that is a key has the hash of the option that it was decided to be."""

    @sgc.function
    def program(s, q: str):
        seen, pairs = set(), Counter()
        for word in ("yes", "no", "maybe"):
            s += word + sgc.select("x", choices=["yes", "no"])
            pairs[word, s["x"]] += 1
            seen.add((word, s["x"]))
        s += "."
        return sorted(seen), pairs["yes", "yes"], len(pairs)

    agree(program, REPLIES, q="x")
