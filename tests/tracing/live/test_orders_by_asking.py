"""Orders by a function that asks a model: `sorted`, `max`, `min` and `xs.sort`."""

from __future__ import annotations

import pytest
from control_flow import agree

import sgc

REPLIES = ["a,bb,c", "7", "x,7", "2", "no,yes,maybe"]


@sgc.function
def judged(s, text: str):
    s += "Rate " + text + sgc.gen("n")
    return len(s["n"])


def parts_of(s, q):
    s += q + sgc.gen("xs")
    return s["xs"].split(",")


@sgc.function
def sorts(s, q: str):
    xs = parts_of(s, q)
    s += str(sorted(xs, key=lambda x: judged(x).ret_value, reverse=True)) + str(xs)


@sgc.function
def sorts_by_several(s, q: str):
    xs = parts_of(s, q)

    def key(x):
        return -judged(x).ret_value, x

    s += ";".join(sorted(xs, key=key))


@sgc.function
def sorts_in_place(s, q: str):
    xs = parts_of(s, q)
    same = xs
    xs.sort(reverse=len(q) > 0, key=lambda x: judged(x).ret_value)
    s += str(same)


@sgc.function
def takes_the_best(s, q: str):
    xs = [x for x in parts_of(s, q) if len(x) > 1]
    s += max(xs, key=lambda x: judged(x).ret_value, default="none")
    s += min(parts_of(s, q), key=lambda x: judged(x).ret_value)


@sgc.function
def fails_for_nothing(s, q: str):
    xs = [x for x in parts_of(s, q) if len(x) > 4]
    try:
        s += max(xs, key=lambda x: judged(x).ret_value)
    except ValueError as error:
        s += str(error)


@sgc.function
def orders_pairs(s, q: str):
    counts = {x: len(x) for x in parts_of(s, q)}
    pairs = sorted(counts.items(), key=lambda pair: judged(pair[0]).ret_value + pair[1])
    s += str(pairs)


@sgc.function
def orders_what_is_left_of_an_iterator(s, q: str):
    numbered = zip(parts_of(s, q), ["a", "b", "c"], strict=False)
    s += str(sorted(numbered, key=lambda pair: judged(pair[0]).ret_value))


@sgc.function
def filters_and_maps(s, q: str):
    xs = parts_of(s, q)
    kept = list(filter(lambda x: judged(x).ret_value > 1, xs))
    s += str(kept)
    s += ";".join(map(lambda x: x + str(judged(x).ret_value), xs))  # noqa: C417
    if any(map(lambda x: judged(x).ret_value == 1, xs)):  # noqa: C417
        s += "one"


@pytest.mark.parametrize(
    "program",
    [
        sorts, sorts_by_several, sorts_in_place, takes_the_best, fails_for_nothing, orders_pairs,
        orders_what_is_left_of_an_iterator, filters_and_maps,
    ],
    ids=lambda each: each.name,
)  # fmt: skip
def test_runs_are_as_interpreted(program):
    graph = agree(program, REPLIES, q="a")
    assert not [node for node in graph.nodes() if node.op == "deopt"]


@sgc.function
def orders_by_data(s, q: str):
    xs = parts_of(s, q)
    s += str(sorted(xs, key=lambda x: (len(x), x))) + max(xs, key=len)
    xs.append(q)
    s += sgc.gen("y")


def test_an_order_by_data_stays_one_piece_of_code():
    graph = agree(orders_by_data, REPLIES, q="a")
    assert not [node for node in graph.nodes() if "keys" in str(dict(node.fields).get("code", ""))]
