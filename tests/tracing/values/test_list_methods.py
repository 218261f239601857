"""Methods of lists that compare their items, of which some are texts of a `str` enum."""

from __future__ import annotations

from collections import deque
from enum import Enum

import pytest
from control_flow import agree
from tests_support import one_in

import sgc


class Tone(str, Enum):  # noqa: UP042
    WARM = "warm"
    COLD = "cold"


REPLIES = ("warm", "cold", "b", "zz")


def counts(s, xs, x):
    s += f"{xs.count(x)} {xs.count(f'{x}')} {xs.count('warm')}"


def finds(s, xs, x):
    try:
        s += f"at {xs.index(x, 1)}"
    except ValueError:
        s += "nowhere"


def removes(s, xs, x):
    try:
        xs.remove(f"{x}")
    except ValueError as error:
        s += str(error)
    s += f" leaves {len(xs)}"


def sorts(s, xs, x):
    xs.append(x)
    xs.sort(reverse=True)
    s += "|".join(xs)


def sorts_by_key(s, xs, x):
    pairs = [(x, 0), *((each, n) for n, each in enumerate(xs, 1))]
    s += "|".join(str(n) for _, n in sorted(pairs, key=lambda pair: (pair[0], -pair[1])))


def is_largest(s, xs, x):
    s += max(xs[0], x) + min(x, xs[1])


@pytest.mark.parametrize(
    "does", one_in(3, [counts, finds, removes, sorts, sorts_by_key, is_largest])
)
def test_items_are_compared_as_python_does(does):
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a")
        does(s, [Tone.COLD, "b", Tone.WARM], s["a"])

    agree(program, REPLIES, q="x")


@pytest.mark.parametrize("kind", [tuple, deque])
def test_so_are_those_of_tuples_and_deques(kind):
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a")
        counts(s, kind([Tone.COLD, "b", Tone.WARM]), s["a"])

    agree(program, REPLIES, q="x")


def test_lists_of_what_is_known_are_left_alone():
    @sgc.function
    def program(s, q: str):
        xs = [3, 1, 2]
        xs.sort(key=lambda x: -x)
        xs.remove(1)
        s += f"{xs} {xs.index(2)} {sorted('hello')} {['b', Tone.COLD].count('cold')}"
        s += q + sgc.gen("a")

    graph = agree(program, REPLIES, q="x")
    assert not [node for node in graph.nodes() if node.op in ("compute", "branch")]
