"""`x += y` and the like on values out of JSON: a list is changed in place, a number is not."""

from __future__ import annotations

import json

import pytest
from control_flow import agree, agree_or_refuse

import sgc
from sgc.errors import TraceError
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program

POOL = (
    '{"n": 3, "xs": [1], "t": "a"}', '{"n": 2.5, "xs": [], "t": ""}', '{"n": "x", "xs": 3, "t": 1}',
    '{"n": [1], "xs": ["b"], "t": "z"}', '{"n": null}', "[1, 2]", "no",
)  # fmt: skip


@sgc.function
def sums(s, q: str):
    score = best = 0
    for _ in range(4):
        s += q + sgc.gen("a", max_tokens=40)
        try:
            row = json.loads(s["a"])
            score += row["n"]
            best -= row["n"] * 2
        except (ValueError, TypeError, KeyError) as error:
            s += type(error).__name__
            break
    s += f"{score} {best}"


@sgc.function
def of_a_part(s, q: str):
    s += q + sgc.gen("a", max_tokens=40)
    try:
        row = json.loads(s["a"])
        n = row["n"]
        n += 1
        n *= 2
        t = row["t"]
        t += "!"
        t *= 2
        s += f"{n} {t} {row}"
    except (ValueError, TypeError, KeyError) as error:
        s += type(error).__name__ + str(error)[:5]
    s += sgc.gen("b", max_tokens=3)


@sgc.function
def over_rows(s, q: str, rows: list[dict] = [{"p": 1}, {"p": 2.5}]):  # noqa: B006
    total, streak = 0, 0
    for row in rows:
        s += q + sgc.gen("a", max_tokens=3)
        if "n" in s["a"]:
            total += row["p"] + streak * 5
            streak += 1
        else:
            streak = 0
    s += str(total)


@sgc.function
def of_sets(s, q: str):
    s += q + sgc.gen("a", max_tokens=40)
    parts = {part for part in s["a"].split(",") if "n" in part}
    parts |= {part for part in s["a"].split(" ") if "x" in part}
    s += ",".join(sorted(parts)) + sgc.gen("b", max_tokens=3)


@sgc.function
def of_a_list(s, q: str):
    s += q + sgc.gen("a", max_tokens=40)
    try:
        row = json.loads(s["a"])
        xs = row["xs"]
        xs += [5]
        s += f"{xs} {row}"
    except (ValueError, TypeError, KeyError) as error:
        s += type(error).__name__


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("function", [sums, of_a_part, over_rows], ids=lambda each: each.name)
def test_as_interpreted_or_refused(function):
    program = function.compile(opt_level=0)
    for level in (0, 2):
        agree_or_refuse(function, Program(optimize(program.graph, level)), POOL, 24)


@pytest.mark.slow
def test_numbers_are_added():
    pool = ('{"n": 3}', '{"n": 2.5}', '{"n": -1}')
    agree(sums, pool, n=8, levels=(0, 2), q="x")


def test_a_set_that_nothing_else_holds_is_changed_by_code():
    agree(of_sets, POOL, n=16, levels=(0, 2), q="x")


def test_a_list_that_is_likely_changed_in_place_is_refused_when_compiling():
    with pytest.raises(TraceError, match=r"test_in_place.py:\d+.* is changed"):
        of_a_list.compile()
