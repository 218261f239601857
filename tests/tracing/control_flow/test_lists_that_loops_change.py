"""Lists known only at run time that a loop over them changes: it sees them as they are, as Python
does."""

from __future__ import annotations

import pytest
from control_flow import agree, equal_or_refused

import sgc

REPLIES = ("a", "more", "pop", "set", "")


@sgc.function
def by_number(s, q: str):
    xs = q.split()
    ys = xs
    for i, x in enumerate(xs):
        s += x + sgc.gen("r", max_tokens=4)
        if s["r"] == "set":
            ys[i] = "set!"
            ys[len(ys) - 1] = "last"
    return xs


@sgc.function
def longer_and_shorter(s, q: str):
    xs = q.split()
    for x in xs:
        s += x + sgc.gen("r", max_tokens=4)
        if s["r"] == "more":
            xs.append("z" + s["r"])
        if s["r"] == "pop" and len(xs) > 1:
            xs.pop(0)
    return xs


@sgc.function
def backwards(s, q: str):
    xs = q.split()
    for x in reversed(xs):
        s += x + sgc.gen("r", max_tokens=4)
        xs.append(s["r"])
    return xs


@pytest.mark.parametrize(
    "program", [by_number, pytest.param(longer_and_shorter, marks=pytest.mark.slow)]
)
def test_the_loop_sees_the_list_as_it_is(program):
    graph = agree(program, REPLIES, n=6, q="x y z")
    agree(program, REPLIES, n=4, graph=graph, q="u v w x")


def test_backwards_it_is_refused() -> None:
    assert equal_or_refused(backwards, REPLIES) == "refused"
