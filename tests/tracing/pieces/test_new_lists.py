"""Lists that code has made, which the program goes on to change; whether others see a change is as
in Python, or such programs are refused. Nothing here relies on the trace check."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from control_flow import agree, agree_or_refuse
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.programs.program import Program
from sgc.tracing.tracer import trace

REPLIES = ("", "a", "bb a", "c,bb a", "ccc bb a")
BASE = ["base"]


def words(text: str) -> list[str]:
    return sorted(text.split(), key=len)


def first(text: str, n: int) -> list[str]:
    found = []
    for word in words(text):
        if word not in found:
            found.append(word)
    return found[:n]


def grown(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    found = sorted(s["a"].split(), key=len)
    found += [word for word in s["a"].split(",") if len(word) > 1]
    same = found
    found.append("end")
    return found, same, len(same)


def taken(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    found = first(s["a"], 2)
    before = [*found, "x"]
    found.insert(0, q)
    return found, before


def grown_on_both_arms(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    found = words(s["a"]) if "," in s["a"] else [q]
    s += sgc.gen("b", max_tokens=9)
    found.append(s["b"])
    return found


def grown_by_turns(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    found = sorted(s["a"].split(), key=len)
    for word in s["a"].split(","):
        found += sorted(word, key=str.lower)
        found.sort(key=len)
        found.append(word)
    return found


def several(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    one, other = sorted(s["a"].split(), key=len), sorted(s["a"], key=str.lower)
    one.append("1")
    other.append("2")
    return one, other


def rated(s: Any, word: str) -> str:
    s += word + sgc.gen("r", max_tokens=3)
    return s["r"]


def asked_for_each(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    found = sorted(s["a"].split(), key=len)[:3]
    found += [rated(s, word) for word in found]
    return found


@pytest.mark.parametrize(
    "of",
    one_in(3, [grown, taken, grown_on_both_arms, grown_by_turns, several, asked_for_each]),
    ids=lambda of: of.__name__,
)
def test_they_are_the_programs_own(of: Any) -> None:
    agree(sgc.function(of), REPLIES, q="x")


def either(xs: list[str]) -> list[str]:
    return xs if len(xs) > 1 else sorted(xs, key=len)


def based(text: str) -> list[str]:
    return BASE if text else [text]


def noted(text: str, seen: list[str] = []) -> list[str]:  # noqa: B006
    return seen if text else sorted(text, key=len)


def pair(text: str) -> tuple[list[str], list[str]]:
    found = sorted(text.split(), key=len)
    return found, found


ROWS = (
    "[]", '[{"n": "a", "k": 3}, {"n": "b", "k": 1}]', '[{"n": "", "k": 3}, {"n": "", "k": 1}]',
    '[{"n": "", "k": 7}, {"n": "z", "k": 2}, {"n": "y", "k": 9}]', "b",
)  # fmt: skip


def _rows(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    return json.loads(s["a"])


def chosen_and_sorted(s: Any, q: str) -> Any:
    rows = _rows(s, q)
    ok = [row for row in rows if row["n"]]
    if not ok:
        ok = sorted(rows, key=lambda row: row["k"])[:1]
    ok.sort(key=lambda row: row["k"], reverse=True)
    return ok, rows


def chosen_and_grown(s: Any, q: str) -> Any:
    rows = _rows(s, q)
    ok = [row for row in rows if row["n"]]
    if not ok:
        ok = sorted(rows, key=lambda row: row["k"])[:1]
    ok.append({"n": "new", "k": 0})
    ok.insert(0, {"n": "first", "k": 0})
    return ok, rows


def chosen_and_cut(s: Any, q: str) -> Any:
    rows = _rows(s, q)
    ok = [row for row in rows if row["n"]]
    if len(ok) < 2:
        ok = [*rows, *rows]
    ok[:1] = [{"n": "other", "k": 4}]
    del ok[-1]
    ok.reverse()
    return ok, rows


@pytest.mark.parametrize("of", [chosen_and_sorted, chosen_and_grown, chosen_and_cut])
def test_lists_whose_items_others_have_are_changed_after_paths_have_met(of: Any) -> None:
    agree(sgc.function(of), ROWS, q="x")


def sorted_while_another_has_it(s: Any, q: str) -> Any:
    rows = _rows(s, q)
    ok = [row for row in rows if row["n"]]
    both = (ok, 1)
    if len(rows) > 2:
        ok = sorted(rows, key=lambda row: row["k"])[:2]
    ok.sort(key=lambda row: row["k"])
    return ok, both


def grown_of_two(s: Any, q: str) -> Any:
    rows = _rows(s, q)
    ok, others = [row for row in rows if row["n"]], [row for row in rows if not row["n"]]
    if len(rows) > 1:
        ok, others = others, ok
    ok.append({"n": "new", "k": 0})
    return ok, others


def a_part_is_changed(s: Any, q: str) -> Any:
    rows = _rows(s, q)
    ok = [row for row in rows if row["n"]]
    if not ok:
        ok = sorted(rows, key=lambda row: row["k"])[:1]
    for row in ok:
        row["k"] += 1
    return ok, rows


@dataclass
class Bag:
    held: list[str] = field(default_factory=list)

    def split(self) -> list[str]:
        return self.held


def it_may_be_an_argument(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    found = s["a"].split()
    other = either(found)
    other.append("x")
    return found, other


def it_may_be_a_constant(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    found = based(s["a"])
    other = based(s["a"])
    found += [s["a"], q]
    return found, other


def it_may_be_a_default(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    found, other = noted(s["a"]), noted(s["a"])
    found += sorted(s["a"], key=str.lower)
    return found, other


def it_is_in_another(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    rows = [sorted(part.split(), key=len) for part in s["a"].split(",")]
    longest = max(rows, key=len)
    longest.append("x")
    return rows, longest


def two_are_one(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    found, other = pair(s["a"])
    found.append("x")
    return found, other


def one_has_two_names(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    found = other = sorted(s["a"].split(), key=len)
    found += sorted(s["a"], key=str.lower)
    other.append("x")
    return found, other


def a_method_gives_what_it_has(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    bags = [Bag(sorted(part.split(), key=len)) for part in s["a"].split(",")]
    found = max(bags, key=lambda bag: len(bag.held)).split()
    found.append("x")
    return found, [bag.held for bag in bags]


def it_is_put_into_another(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    rows = []
    for part in s["a"].split(","):
        row = sorted(part.split(), key=len)
        rows.append(row)
        row.append(part)
    return rows


OTHERS = (
    it_may_be_an_argument, it_may_be_a_constant, it_may_be_a_default, it_is_in_another, two_are_one,
    one_has_two_names, a_method_gives_what_it_has, it_is_put_into_another,
    sorted_while_another_has_it, grown_of_two, a_part_is_changed,
)  # fmt: skip


@pytest.mark.parametrize("of", one_in(4, OTHERS), ids=lambda of: of.__name__)
def test_what_others_may_have_changes_as_in_python(of: Any) -> None:
    program = sgc.function(of)
    try:
        compiled = Program(trace(program, is_full=True))
    except TraceError:
        return
    agree_or_refuse(program, compiled, (*REPLIES, *ROWS), n=6)
