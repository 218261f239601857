"""A dict or list that a variable had, put under a key known only at run time: the variable is not
read again, so nothing else has it. Others are refused, or equal."""

from __future__ import annotations

from typing import Any

import pytest
from control_flow import agree, equal_or_refused

import sgc

REPLIES = ("high", "HIGH", "low", "")


@sgc.function
def of_several_forms(s, q: str):
    found = {}
    for x in q.split():
        s += x + sgc.gen("r", max_tokens=4)
        entry = {"risk": s["r"], "n": len(x)}
        if s["r"] == "high":
            entry["redline"] = s["r"] or None
        found[x] = entry
    s += ",".join(k for k, each in found.items() if each["risk"] == "HIGH")
    return found


def read_again(s, words: list[str]) -> Any:
    found, last = {}, None
    for x in words:
        s += x + sgc.gen("r", max_tokens=4)
        entry = {"risk": s["r"]}
        found[x] = entry
        last = entry
    if last is not None:
        last["more"] = 1
    return found


def under_two_keys(s, words: list[str]) -> Any:
    found = {}
    for x in words:
        s += x + sgc.gen("r", max_tokens=4)
        entry = {"risk": s["r"]}
        found[x] = entry
        found[x + "2"] = entry
    found["a"]["n"] = 1
    return found


def with_a_part_of_others(s, words: list[str]) -> Any:
    found = {}
    for x in words:
        s += x + sgc.gen("r", max_tokens=4)
        tags = [s["r"]]
        entry = {"risk": s["r"], "tags": tags}
        found[x] = entry
        tags.append("t")
    return found


def in_a_closure(s, words: list[str]) -> Any:
    found: dict[str, Any] = {}

    def last() -> Any:
        return entry

    for x in words:
        s += x + sgc.gen("r", max_tokens=4)
        entry = {"risk": s["r"]}
        found[x] = entry
    last()["k"] = 1
    return found


def test_what_is_given_away_may_be_put_there() -> None:
    agree(of_several_forms, REPLIES, n=6, q="a b a")


@pytest.mark.parametrize("body", [read_again, under_two_keys, with_a_part_of_others, in_a_closure])
def test_others_are_equal_or_refused(body: Any) -> None:
    @sgc.function
    def program(s, q: str):
        return body(s, ["a", *q.split()])

    equal_or_refused(program, REPLIES)
