"""Lists that paths would widen, or that code is given, while something else has them too."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import Any

import pytest
from control_flow import agree_or_refuse
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.tracing.tracer import trace


def wrapped(xs: list[str], text: str) -> dict[str, Any]:
    return {"xs": xs, "n": len(re.findall(r"\d", text)), "most": Counter(xs).most_common(1)}


@sgc.function
def held_by_a_partial_function(s, q: str):
    xs: list[str] = []
    shown = partial(",".join, xs)
    for _ in range(8):
        s += q + sgc.gen("a", max_tokens=3)
        xs.append("x")
        if s["a"] == "stop":
            break
    s += shown()
    return len(xs)


@sgc.function
def gone_over_while_it_grows(s, q: str):
    todo = ["start"]
    for each in todo:
        s += each + q + sgc.gen("a", max_tokens=3)
        if s["a"] == "stop":
            break
        if len(todo) < 5:
            todo.append(s["a"])
    return len(todo), todo


@sgc.function
def part_of_what_code_gives(s, q: str):
    s += q + sgc.gen("a", max_tokens=3)
    xs = s["a"].split(" ")
    found = wrapped(xs, s["a"])
    xs.append("more")
    s += ",".join(found["xs"])
    return found["n"], xs


PROGRAMS = (held_by_a_partial_function, gone_over_while_it_grows, part_of_what_code_gives)


@pytest.mark.parametrize("program", one_in(3, PROGRAMS), ids=lambda each: each.name)
def test_it_is_what_it_is_interpreted_or_refused(program: sgc.Function) -> None:
    try:
        compiled = Program(optimize(trace(program, is_full=True), 1))
    except TraceError:
        return
    agree_or_refuse(program, compiled, ("a b", "stop", "b", "7 c"), 8)
