"""What a loop goes over, when nothing but the loop has it any more: two ways that have changed it
differently do not go on as one.
"""

from __future__ import annotations

import gc
import itertools
from collections import Counter, OrderedDict, deque
from typing import Any

import pytest
from control_flow import agree
from tests_support import one_in

import sgc
from sgc.tracing.snapshots.leaves import are_iterated, n_collections

REPLIES = ("yes", "no")
# Ways to go over the items of something.
OVERS = {
    "itself": lambda xs: xs,
    "iter": iter,
    "enumerate": enumerate,
    "zip": lambda xs: zip(xs, ("1", "2", "3", "4"), strict=False),
    "map": lambda xs: map(str, xs),
    "filter": lambda xs: filter(None, xs),
    "chain": lambda xs: itertools.chain(xs, ["end"]),
    "islice": lambda xs: itertools.islice(xs, 3),
    "enumerate of zip": lambda xs: enumerate(zip(xs, xs, strict=False)),
}
# What is gone over, and how it is changed.
CHANGES = {
    "a list grows": (lambda: ["a", "b"], lambda xs: xs.append("z")),
    "an item is set": (lambda: ["a", "b"], lambda xs: xs.__setitem__(1, "z")),
    "an item goes": (lambda: ["a", "b", "c"], lambda xs: xs.pop()),
    "a list in it grows": (lambda: [["a"], ["b"]], lambda xs: xs[1].append("z")),
    "a list in a tuple grows": (lambda: (["a"], ["b"]), lambda xs: xs[1].append("z")),
    "a dict in it grows": (lambda: [{"a": 1}, {"b": 2}], lambda xs: xs[1].update(z=1)),
    "an item of a deque is set": (
        lambda: deque(["a", "b"]), lambda xs: xs.__setitem__(1, "z")
    ),
}  # fmt: skip
VIEWS = {
    "values": (lambda: {"a": "1", "b": "2"}, lambda d: d.values()),
    "items": (lambda: OrderedDict(a="1", b="2"), lambda d: d.items()),
    "items of a counter": (lambda: Counter(a=1, b=2), lambda d: d.items()),
    "enumerated": (lambda: {"a": "1", "b": "2"}, lambda d: enumerate(d.values())),
}


def _program(make: Any, change: Any, over: Any) -> Any:
    @sgc.function
    def program(s, q: str):
        xs = make()
        s += q + sgc.gen("a")
        seen = []
        for x in over(xs):
            s += str(x)
            if xs is not None and s["a"] == "yes":
                change(xs)
            xs = None
            s += "."
            seen.append(str(x))
        return seen

    return program


@pytest.mark.sweep
@pytest.mark.parametrize(("over", "change"), one_in(3, OVERS, CHANGES))
def test_ways_that_change_what_a_loop_goes_over(over: str, change: str) -> None:
    make, changed = CHANGES[change]
    agree(_program(make, changed, OVERS[over]), REPLIES, q="x")


@pytest.mark.parametrize("view", VIEWS)
def test_ways_that_change_what_a_view_shows(view: str) -> None:
    make, over = VIEWS[view]
    agree(_program(make, lambda d: d.update(b="z"), over), REPLIES, q="x")


def test_a_list_that_stays_as_it_is_keeps_no_ways_apart() -> None:
    @sgc.function
    def program(s, q: str):
        for word in ["one", "two", "three", "four", "five", "six", "seven"]:
            s += word + sgc.gen("a")
            if s["a"] == "yes":
                s += "!"
        return s["a"]

    assert agree(program, REPLIES, q="x").n_nodes < 60


@pytest.mark.parametrize("is_young", [True, False])
def test_a_list_that_is_gone_over_is_known_before_and_after_a_collection(is_young: bool) -> None:
    n_before = n_collections()
    over, other = ["a", "b"], ["a", "b"]
    going = iter(over)
    assert next(going) == "a"
    if not is_young:
        gc.collect()
    assert are_iterated([over, other], n_before) == [True, False]
