"""Look-ups by values out of JSON in dicts and sets of texts: what Python gives or raises."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest
from control_flow import agree

import sgc

TABLE: dict[str, Any] = {"a": len, "b": str.upper, "c": None}
NUMBERS = {"a": 1, "b": 2}
REPLIES = ['"a"', '"b"', '"c"', '"z"', "1", "null", "[1]", "{}", "true", "x"]


def in_a_table(v: Any) -> Any:
    return TABLE[v] is None


def a_number(v: Any) -> Any:
    return NUMBERS[v]


def with_a_default(v: Any) -> Any:
    return NUMBERS.get(v, 7), TABLE.get(v) is None


def whether_it_is_there(v: Any) -> Any:
    return v in NUMBERS, v in {"a", "z"}, v not in TABLE


def among_none(v: Any) -> Any:
    nothing: dict[str, int] = {}
    return v in nothing, nothing.get(v)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "look_up", [in_a_table, a_number, with_a_default, whether_it_is_there, among_none]
)
def test_a_value_out_of_json_is_looked_up(look_up: Any) -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        try:
            value = json.loads(s["a"])
            return look_up(value)
        except (KeyError, TypeError, ValueError) as error:
            s += f"{type(error).__name__} {error}"
            return None

    agree(program, REPLIES, q="x", n=24)


@sgc.function
def keyed_by_choices(s, q: str):
    groups = defaultdict(list)
    s += q + sgc.select("team", choices=["red", "blue"])
    groups[s["team"]].append(q)
    groups["red"].append("x")
    return {"all": dict(groups), "sizes": {key: len(each) for key, each in groups.items()}}


def test_what_is_returned_may_have_chosen_texts_as_keys() -> None:
    agree(keyed_by_choices, ("red", "blue"), n=24, q="x")
