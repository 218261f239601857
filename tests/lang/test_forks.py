"""Forks: streams that keep apart, and what is gathered of them."""

from __future__ import annotations

import pytest
from tests_support import run_both

import sgc
from sgc.errors import SgcWarning


def test_join_gathers_new_names_and_warns_of_others(scripted):
    """What SGLang does silently: a second fork and join of one name keeps the first lists."""

    @sgc.function
    def program(s):
        s["grade"] = "A"
        group = s.fork(3)
        for index, child in enumerate(group):
            child["grade"] = "ABA"[index]
            child["other"] = f"{index}"
            child += sgc.gen("g")
        group.join()
        s += s["grade"] + "".join(s["other"]) + "".join(child["grade"] for child in group)

    with pytest.warns(SgcWarning, match="test_forks.py:.*join leaves 'grade' as it is"):
        assert run_both(program, scripted()).text() == "A012ABA"


def test_streams_of_functions_with_odd_names_keep_apart(scripted):
    @sgc.function
    def f0(s, x):
        s += x + sgc.gen("g", temperature=1.0)

    @sgc.function
    def program(s):
        s += "a"
        group = s.fork(2)
        group += sgc.gen("g", temperature=1.0)
        f0("x")
        f0("y")

    result = run_both(program, scripted())
    assert len({stream.path for stream in result.streams}) == 5
    assert len({request.sampling.seed for request in result.requests if request.sampling}) == 4


def test_a_fork_without_generations_compiles(scripted):
    @sgc.function
    def program(s, x):
        s += x
        group = s.fork(3)
        group += lambda i: f"{i}"
        group.join("concate_and_append")

    assert run_both(program, scripted(), x="a").text() == "a012"
    assert run_both(program, scripted(), x="a").stats.commits == 1
