"""Error classes of the program's own, raised by code that is data."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from control_flow import agree

import sgc

REPLIES = ("a", "b", "a,b", "b,a,cc", "", "7", "12", "yes", "no")


class TooLong(ValueError):
    """An error of the program's own, with an attribute."""

    def __init__(self, text: str, n: int = 0):
        super().__init__(f"{text!r} is too long")
        self.n = n


class FarTooLong(TooLong):
    pass


def shortened(text: str) -> str:
    words = sorted(text.split(","), key=len)
    if len(words) > 2:
        raise FarTooLong(text, len(words))
    if len(words) > 1:
        raise TooLong(text, len(words))
    return re.sub("[aeiou]", "", words[0])


@sgc.function
def errors_of_its_own(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    try:
        text = shortened(s["a"])
    except FarTooLong as error:
        text = f"far {error}"
    except TooLong as error:
        text = f"{error} {type(error).__name__}"
    except ValueError:
        text = "value"
    s += text + sgc.gen("b", max_tokens=2)
    return text


@sgc.function
def errors_that_leave(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    text = shortened(s["a"])
    s += text + sgc.gen("b", max_tokens=2)
    return text


@pytest.mark.parametrize("program", [errors_of_its_own, errors_that_leave], ids=lambda p: p.name)
def test_errors_of_the_programs_own(program: Any) -> None:
    agree(program, REPLIES, n=16, q="x")


class Coded(Exception):
    """An error of several arguments."""


@sgc.function
def several_arguments(s):
    last = None
    for n in range(3):
        s += "q" + sgc.gen("g", max_tokens=4)
        try:
            if s["g"] != "7":
                raise Coded("empty", n)
        except Coded as error:
            last = error
            s += f"{error.args} {error!r}"
    if last is not None:
        raise last
    return "fine"


def test_an_error_of_several_arguments_is_no_difference():
    """The check compared its first argument alone with what the graph raises."""
    several_arguments.compile()
    agree(several_arguments, REPLIES, n=8)


@sgc.function
def place_in_json(s):
    s += "q" + sgc.gen("g", max_tokens=9)
    try:
        json.loads(s["g"])
    except json.JSONDecodeError as error:
        return f"{error.msg} {error.pos + 1} {error.lineno} {error.colno}"
    return "fine"


def test_where_text_stops_being_json_is_a_number():
    agree(place_in_json, ('{"a": 1}', '{"a":\n x}', "", "[1,]", "{'a'}"), n=8)


class PlanError(Exception):
    """A plan that cannot be run."""


class TooMany(PlanError): ...


def parsed(text: str, most: int = 2) -> list[Any]:
    try:
        plan = json.loads(text)
    except ValueError as error:
        raise PlanError("no list") from error
    if not isinstance(plan, list):
        raise PlanError(f"no list but {plan}")
    if len(plan) > most:
        raise TooMany(f"at most {most} steps")
    for step in plan:
        args = step.setdefault("args", [])
        if len(args) > 1:
            raise PlanError("too many arguments")
    return plan


@sgc.function
def plans(s):
    plan = []
    for _ in range(3):
        s += "q" + sgc.gen("plan", max_tokens=9)
        try:
            plan = parsed(s["plan"])
        except TooMany as error:
            s += f"{type(error).__name__}: {error}"
        except PlanError as error:
            s += str(error) or "?"
        else:
            break
    s += "last" + sgc.gen("last", max_tokens=9)
    rest = parsed(s["last"], 1)
    return [step["args"] for step in plan + rest]


def test_code_that_changes_data_may_raise_errors_of_the_programs_own():
    graph = plans.compile().graph
    assert graph.n_nodes < 160
    replies = ("[]", '[{"args": [1, 2]}]', '[{"args": [1]}, {}]', "[{}, {}, {}]", "[", "7", "[{}]")
    agree(plans, replies, n=6, graph=graph)
