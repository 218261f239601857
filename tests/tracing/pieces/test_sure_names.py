"""Names of a piece that are set on every path to it: behind `try`, or a loop left by `break`."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from control_flow import agree

import sgc

REPLIES = ("7", "x", "12", '{"n": 2}', '{"n": "a"}', "", "0")
JSON = ('{"n": 2}', '{"n": 7.5}', "x", "", '{"n": 0}', '{"n": "a"')


def halved(text):
    n = float(text)
    if n > 10:
        raise ValueError("too much")
    return {"half": n / 2}["half"]


@sgc.function
def behind_a_try(s, q: str):
    s += q + sgc.gen("a", max_tokens=4)
    try:
        n = halved(s["a"])
    except ValueError as error:
        return str(error)
    return "close" if math.isclose(n, 3.5, abs_tol=1) else "far"


@sgc.function
def behind_a_try_that_sets_it_twice(s, q: str):
    s += q + sgc.gen("a", max_tokens=4)
    try:
        n = halved(s["a"])
    except ValueError:
        n = 1.0
    finally:
        s += "."
    return math.isclose(n, 1.0)


@sgc.function
def behind_a_loop_left_by_break(s, q: str):
    problems = []
    for _ in range(3):
        s += q + sgc.gen("a", max_tokens=8)
        try:
            data = json.loads(s["a"])
        except json.JSONDecodeError as error:
            problems.append(error.msg)
            continue
        if math.isfinite(data["n"]):
            break
    else:
        return problems
    return round(data["n"] + 0.25, 1), problems


@sgc.function
def behind_an_endless_loop(s, q: str):
    n = 0
    while True:
        s += q + sgc.gen("a", max_tokens=4)
        n += 1
        try:
            half = halved(s["a"])
        except ValueError:
            if n == 4:
                half = 0.0
                break
            continue
        break
    return math.isclose(half, 3.5)


@sgc.function
def beside_a_break_of_another_loop(s, q: str):
    for _ in range(3):
        s += q + sgc.gen("a", max_tokens=8)
        for word in s["a"].split(","):
            if word == "7":
                break
        n = len(s["a"]) / 2
        if word:
            break
    else:
        return "none"
    return math.isclose(n, 0.5)


class OddError(json.JSONDecodeError):
    def __str__(self):
        return "odd"


@sgc.tool
def fetched(text: str) -> str:
    if text == "x":
        raise OddError("other", text, 0)
    return text


def parsed(text):
    return json.loads(text)["n"] + 1


def test_the_message_of_a_tool_s_error_is_not_read_as_json_s():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=4)
        try:
            return parsed(fetched(s["a"]))
        except json.JSONDecodeError as error:
            return error.msg

    agree(program, ('{"n": 1}', "x", "{"), tools=[fetched], q="q")


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("program", "replies"),
    [
        (behind_a_try, REPLIES),
        (behind_a_try_that_sets_it_twice, REPLIES),
        (behind_a_loop_left_by_break, JSON),
        (behind_an_endless_loop, REPLIES),
        (beside_a_break_of_another_loop, REPLIES),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_what_is_set_behind_it_is_the_same_compiled(program: Any, replies: Any) -> None:
    agree(program, replies, n=20, q="x")


@sgc.function
def not_set_on_a_path(s, q: str):
    s += q + sgc.gen("a", max_tokens=4)
    for _ in range(2):
        try:
            n = halved(s["a"])
        except ValueError:
            continue
        if n:
            break
    return math.isclose(n, 3.5)


@sgc.function
def set_by_patterns(s, q: str):
    s += q + sgc.gen("a", max_tokens=4)
    match s["a"].split():
        case [first, *rest] if rest:
            return first, [f"{each}!" for each in ("p", "q") if any(each in w for w in rest)]
        case ["x" | "y" as only]:
            kind = only
        case _:
            kind = "other"
    return sorted(kind), math.isclose(len(kind), 1)


@sgc.function
def set_by_a_test(s, q: str):
    s += q + sgc.gen("a", max_tokens=4)
    if found := [each for each in s["a"] if each.isdigit()]:
        return sorted(found, key=lambda each: -int(each))
    return math.isclose(len(found), 0)


@pytest.mark.parametrize(
    ("program", "replies"),
    [
        (not_set_on_a_path, REPLIES),
        (set_by_patterns, ("x", "z y", "a p q", "p", "")),
        (set_by_a_test, REPLIES),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_names_of_patterns_and_tests_and_what_is_always_read(program: Any, replies: Any) -> None:
    agree(program, replies, n=8, q="x")
