"""Loops over `map` and `filter`, whose functions may ask the model."""

from __future__ import annotations

import functools
import runpy

import pytest
from control_flow import agree
from tests_support import written

import sgc

REPLIES = ("a", "b", "a,b", "b,a,,c", "", "yes")


@sgc.function
def ask(s, x: str):
    s += x + sgc.gen("y", max_tokens=4)
    return s["y"]


def asked(x):
    return ask(x).ret_value or x


def is_good(x):
    return "a" in ask(x).ret_value


def longer(least, x):
    return len(x) > least


@sgc.function
def loops(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    for x in map(str.strip, s["a"].split(",")):
        s += f"<{x}>" + sgc.gen("x", max_tokens=3)
    for x in map(asked, s["a"].split(",")):
        if x == "yes":
            break
        s += x
    else:
        s += "all"
    for x in filter(None, s["a"].split(",")):
        s += f"[{x}]"
    for i, x in enumerate(s["a"].split(",")):
        s += f"{i}{x}"
    for x in filter(functools.partial(longer, 1), s["a"].split(",")):
        if x == "b":
            continue
        s += f"({x})" + sgc.gen("z", max_tokens=3)


@sgc.function
def lists(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    answers = list(map(asked, s["a"].split(",")))
    s += ";".join(filter(is_good, answers)) + str(len(answers))
    s += str(sorted(map(asked, answers[:2])))
    return answers


@sgc.function
def rebound(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    change = str.upper
    for x in map(change, s["a"].split(",")):
        change = str.lower
        s += x + change("B")
    use = lambda x: x * 2  # noqa: E731
    for pair in map(lambda x: (x, use(x)), ["a", s["a"]]):  # noqa: C417
        use = len
        a, b = pair
        s += f"{a}{b}"
    for x, n in map(divmod, [5, 7], [2, 3]):
        s += f"{x}{n}"


@pytest.mark.sweep
@pytest.mark.parametrize("program", [loops, lists, rebound])
def test_map_and_filter_do_as_in_python(program):
    graph = agree(program, REPLIES, q="x")
    assert sum(node.op == "gen" for node in graph.nodes()) < 9


OWN = """
def map(function, items):
    return [function(item) + "!" for item in items]

@sgc.function
def p(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    for x in map(str.strip, s["a"].split(",")):
        s += x
"""


def test_a_name_that_a_module_binds_is_its_own(tmp_path):
    agree(runpy.run_path(written(tmp_path, OWN))["p"], REPLIES, q="x")
