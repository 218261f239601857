"""Forks whose children are used in loops, iterators and after the join."""

from __future__ import annotations

import pytest
from control_flow import agree

import sgc

YES_NO = ["yes", "no"]


def ask(s, q):
    s += q
    s += sgc.gen("x")
    if s["x"] == "yes":
        s += "!"
    s += "."


def test_a_loop_on_one_line_over_forks():
    @sgc.function
    def program(s, q: str):
        s += q
        for f in s.fork(3): ask(f, q)  # noqa: E701  # fmt: skip
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


def forks_of(s, n):
    for i in range(n):
        (child,) = s.fork(1)
        s += f"{i}"
        yield child
        child += "back" + sgc.gen("late")


def test_forks_that_a_generator_makes():
    @sgc.function
    def program(s, q: str):
        s += q
        for f in forks_of(s, 2):
            ask(f, q)
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


@pytest.mark.parametrize("kind", [zip, enumerate])
def test_forks_in_iterators_of_pythons(kind):
    @sgc.function
    def program(s, q: str):
        s += q
        for pair in kind(s.fork(3)):
            f = pair[-1]
            f += "a" + sgc.gen("x")
            if f["x"] == "yes":
                f += "!"
            f += "."
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_a_child_that_is_used_after_the_join():
    @sgc.function
    def program(s, q: str):
        s += q
        group = s.fork(2)
        for f in group:
            f += sgc.gen("x")
            if f["x"] == "yes":
                f += "!"
        group.join()
        s += "joined"
        if group[1]["x"] == "yes":
            group[0] += "late" + sgc.gen("late")
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_another_name_of_a_stream():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        (f,) = s.fork(1)
        if s["x"] == "yes":
            at = s
        else:
            at = f
        at += "then"
        at += sgc.gen("y")
        s += "."
        f += "," + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_streams_of_one_block_that_was_explored():
    """Only a called program decides, whether it fails: the forks end where nothing reaches them."""

    @sgc.function
    def called(t, word: str):
        t += word + sgc.gen("deep")
        t += t["deep"][-1]

    @sgc.function
    def nested(t):
        t += sgc.gen("y")

    @sgc.function
    def program(s):
        s += sgc.gen("x")
        s += sgc.join("/", sgc.map(called, s["x"].split())["deep"])
        for fork in s.fork(2):
            fork += "child" + sgc.gen("y")
        s += nested()["y"] + sgc.gen("last")

    graph = agree(program, ["yes no", "yes", "no"])
    assert len(graph.blocks) == 1
