"""What `x += y` and the like do where `y` alone is known at run time: errors name the operator, and
sets change in place. Nothing here relies on the trace check."""

from __future__ import annotations

import json

import pytest
from control_flow import agree
from traced_at_once import live_at_once, without_live

import sgc
from sgc.tracing import tracer

REPLIES = ("1", '"a"', "[2]", "null", '{"b": 1}', "2.5")


@pytest.fixture(params=["plain", "live"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        without_live(monkeypatch)
    else:
        monkeypatch.setattr(tracer, "_found", live_at_once)


def add(x, y):
    x += y
    return x


def subtract(x, y):
    x -= y
    return x


def divide(x, y):
    x //= y
    return x


def shift(x, y):
    x <<= y
    return x


def either(x, y):
    x |= y
    return x


@sgc.tool(effect="pure")
def parse(text: str) -> dict:
    return {"value": json.loads(text)}


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("change", [add, subtract, divide, shift, either])
@pytest.mark.parametrize("first", [0.5, 3])
def test_an_error_names_the_operator(change, first):
    @sgc.function
    def program(s, q: str):
        spent, told = first, []
        for _ in range(3):
            s += q + sgc.gen("x")
            row = parse(s["x"])
            try:
                spent = change(first, row["value"])
            except TypeError as error:
                told.append(str(error))
            told.append(str(spent))
        return told

    agree(program, REPLIES, q="x", tools=(parse,))


@pytest.mark.usefixtures("_way")
def test_a_sum_of_what_a_tool_gives():
    @sgc.function
    def program(s, q: str):
        spent, told = 0.0, []
        for _ in range(3):
            s += q + sgc.gen("x")
            try:
                spent += parse(s["x"])["value"]
            except (TypeError, KeyError) as error:
                told.append(f"{type(error).__name__}: {error}")
        s += f"{spent}" + sgc.gen("y")
        return spent, told

    agree(program, REPLIES, q="x", tools=(parse,))


def asked(s) -> set[str]:
    s += "more:" + sgc.gen("more")
    return {*s["more"].split(",")}


def test_a_set_that_two_names_have_changes_in_place(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        seen = {*s["x"].split(",")}
        old = seen
        for _ in range(2):
            seen ^= asked(s)
        s += f"{sorted(old)} {old is seen}"
        return sorted(seen)

    agree(program, ("a", "b", "a,b,c"), q="x")


def test_a_number_on_the_left_of_what_asks(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)

    def number(s) -> object:
        s += "n:" + sgc.gen("n")
        return json.loads(s["n"])

    @sgc.function
    def program(s, q: str):
        total, told = 0, []
        for _ in range(3):
            try:
                total += number(s)
            except TypeError as error:
                told.append(str(error))
            s += q + sgc.gen("x")
        return str(total), told

    agree(program, REPLIES, q="x")
