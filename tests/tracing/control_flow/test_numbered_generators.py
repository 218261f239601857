"""Loops over `enumerate` and `zip` of generator expressions and of `map`, and comprehensions that
set a variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from control_flow import agree

import sgc

REPLIES = ("a,b,cc", "no", "", "stop", "bb, b ,c", "no,x")


@dataclass
class Exercise:
    prompt: str
    n: int = 0


@sgc.function
def ask(s, x: str):
    s += x + sgc.gen("y", max_tokens=4)
    return s["y"]


@sgc.function
def numbered(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    xs, out = s["a"].split(","), []
    for i, ex in enumerate((Exercise(x, len(x)) for x in xs), 1):
        s += f"{i}.{ex.prompt}" + sgc.gen("r", max_tokens=4)
        if s["r"] == "no":
            continue
        if s["r"] == "stop":
            break
        out.append((i, ex.n))
    else:
        s += "all"
    return out


@sgc.function
def some_are_left_out(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    xs = s["a"].split(",")
    for i, x in enumerate(ask(x).ret_value for x in xs if len(x) < 3):
        s += f"{i}.{x}" + sgc.gen("r", max_tokens=4)
        if s["r"] == "no":
            continue
        s += "!"
    for i, x in enumerate(filter(None, xs), 2):
        s += f"{i}.{x}"
    for i, x in zip(range(2), map(lambda x: x + "?", xs), strict=False):  # noqa: C417
        s += f"{i}.{x}"
    upper = [f"{i}{x}" for i, x in enumerate(x.upper() for x in xs)]
    return upper, [x + y for x, y in zip(xs, (x[::-1] for x in xs), strict=False)]


@sgc.function
def in_step(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    xs = s["a"].split(",")
    for x, y, z in zip("abc", xs, (ask(x).ret_value for x in xs), strict=False):
        s += f"{x}{y}{z};"
    for i, (x, y) in enumerate((x, len(x)) for x in xs):
        s += f"{i}{x}{y}"
    return len(xs)


@sgc.function
def setting_a_variable(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    xs, n = s["a"].split(","), 3
    big = [b for x in xs if (b := x.strip()) and len(b) > 1]
    if any((hit := x).startswith("n") for x in xs):
        s += hit + sgc.gen("h", max_tokens=4)
    asked = [y for x in xs if (y := ask(x).ret_value)]
    n += len([n := len(x) for x in xs])
    return big, asked, n, n + len([n := len(x) for x in xs]), n


PROGRAMS = [
    in_step, setting_a_variable,
    *(pytest.param(each, marks=pytest.mark.slow) for each in (numbered, some_are_left_out)),
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_agree(program: Any) -> None:
    agree(program, REPLIES, n=4, q="x")
