"""Items by a key or an index out of JSON, whose type is known only at run time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from control_flow import agree, equal_or_refused

import sgc

KEYS = ["0", "1", "-1", "7", '"a"', '"b"', "null", "true", "[0]", "{}", "1.0"]
REPLIES = [f"[{key}, {whole}]" for key in KEYS for whole in ('["x", [2]]', '{"a": 1}', '"xy"', "3")]


def of_json(key: Any, whole: Any) -> Any:
    return whole[key]


def of_a_list(key: Any, whole: Any) -> Any:
    return str(whole).split(",")[key]


def nested(key: Any, whole: Any) -> Any:
    return whole[key][0]


@pytest.mark.sweep
@pytest.mark.parametrize("take", [of_json, of_a_list, nested])
def test_a_key_out_of_json_takes_what_python_takes(take: Any) -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        key, whole = json.loads(s["a"])
        try:
            found = take(key, whole)
            s += f"it is {found}"
            return found
        except (KeyError, TypeError, IndexError) as error:
            s += f"{type(error).__name__} {error}"
            return None

    agree(program, REPLIES, q="x", n=60)


def test_of_an_argument_with_a_schema() -> None:
    @sgc.function
    def program(s, rows: list[dict[str, int]], names: list[str]):
        s += "x" + sgc.gen("a", max_tokens=9)
        key, _ = json.loads(s["a"])
        try:
            return rows[key], names[key]
        except (KeyError, TypeError, IndexError) as error:
            return f"{type(error).__name__} {error}"

    agree(program, REPLIES, rows=[{"a": 1}, {}], names=["n", "m"], n=40)


def test_a_part_by_such_a_key_is_not_changed_silently() -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        groups: dict[str, list[str]] = {}
        for word in s["a"].split():
            groups[word] = [word]
        for word in sorted(groups):
            groups[word].append("+")
        last = max(groups, default="")
        if last:
            group = groups[last]
            group.append("!")
        s += str(groups)
        return groups

    equal_or_refused(program, ["a b a", "x", "", "b"])
