"""`f(**data)` of data known only at run time, of functions that only run time or a table tells."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from control_flow import agree, equal_or_refused

import sgc


def told(city: Any, unit: str = "C", *, n: Any = 1) -> str:
    return f"{city} {unit} {n}"


def asks(a: Any, b: Any) -> Any:
    return f"{a}+{b}=" + sgc.gen("sum", max_tokens=4)


def of_lists(xs: Any = (), n: int = 0) -> str:
    return f"{n} of {xs}"


TABLE = {"told": told, "asks": asks}
POOL = (
    '{"city": "Oslo"}', '{"n": null, "city": 3, "unit": "F"}', '{"a": 1.5, "b": [2]}',
    '{"city": "Rome", "town": "x", "more": 1}', '{"more": 1, "town": "x"}', '{"unit": "K"}', "{}",
    "[]", '["city"]', '"city"', "null", "7", "true", "0.5",
)  # fmt: skip


@sgc.function
def of_a_table(s, q: str):
    s += q + sgc.gen("name", max_tokens=4)
    s += sgc.gen("data", max_tokens=20)
    data = json.loads(s["data"])
    name = "told" if s["name"] < "a" else "asks"
    try:
        s += TABLE[name](**data)
    except TypeError as error:
        s += f"bad: {error}"
    s += sgc.gen("end", max_tokens=2)


@sgc.function
def uncaught(s, q: str):
    s += q + sgc.gen("data", max_tokens=20)
    data = {"args": json.loads(s["data"])}
    s += TABLE["told"](**data["args"])
    return s["data"]


@sgc.function
def of_typed_data(s, rows: list[dict[str, str]]):
    for row in rows:
        s += TABLE["told"](**row) + sgc.gen("x", max_tokens=2)


@pytest.mark.parametrize("program", [of_a_table, uncaught])
def test_each_parameter_gets_its_key_and_errors_are_python_s(program):
    agree(program, POOL, 24, q="x")


def test_so_of_an_argument_s_rows():
    rows = [{"city": "Oslo"}, {"unit": "F", "city": "Rome"}]
    agree(of_typed_data, ("a", "b"), 4, rows=rows)


@sgc.function
def with_another_default(s, q: str):
    s += q + sgc.gen("data", max_tokens=20)
    s += {"f": of_lists}["f"](**json.loads(s["data"])) + sgc.gen("x", max_tokens=2)


@sgc.function
def and_changed(s, q: str):
    s += q + sgc.gen("data", max_tokens=20)
    data = json.loads(s["data"])

    def more(b: Any, a: Any = 0) -> str:
        b.append(a)
        return f"{a} {b}"

    s += more(**data) + str(data) + sgc.gen("x", max_tokens=2)


@pytest.mark.parametrize("program", [with_another_default, and_changed])
def test_others_are_left_to_python(program):
    equal_or_refused(program, POOL[:7])


@sgc.tool(effect="pure")
def look(word: str, n: int = 1) -> str:
    return f"{word}*{n}"


@sgc.tool(effect="pure")
def add(a: float, b: float) -> str:
    return str(a + b)


@dataclass
class Exercise:
    prompt: str
    n: int
    topic: str = "sums"
    tags: list[str] = field(default_factory=list)


TOOLS = {"look": look, "add": add}
CALLS = (
    '{"args": {"word": "x"}}', '{"word": "y", "n": 3}', '{"n": 2}', '{"word": "x", "zz\\t": 1}',
    '{"args": {"a": 1, "b": 2.5}}', '{"args": []}', '{"args": null}', "look", "add", "fly",
    '{"prompt": "p", "n": 4}', '{"prompt": "p", "n": 4, "tags": ["a"], "topic": "t"}',
    '{"prompt": "p"}', "{}", '{"prompt": "p", "n": 4, "self": 1}',
)  # fmt: skip


@sgc.function
def tools_of_a_table(s, q: str):
    s += q + sgc.gen("name", max_tokens=4) + sgc.gen("data", max_tokens=20)
    if s["name"] not in TOOLS:
        return "no such tool"
    call = json.loads(s["data"])
    try:
        s += TOOLS[s["name"]](**call.get("args", call))
    except Exception as error:
        s += f"bad: {error}"
    s += sgc.gen("end", max_tokens=2)
    return look(**call)


@sgc.function
def objects(s, q: str):
    s += q + sgc.gen("data", max_tokens=20)
    data = json.loads(s["data"])
    for i, each in enumerate(Exercise(**row) for row in [data]):
        s += f"{i} {each.prompt} {each.n} {each.topic} {each.tags}" + sgc.gen("x", max_tokens=2)


@pytest.mark.parametrize("program", [tools_of_a_table, objects])
def test_tools_and_classes_take_data(program):
    agree(program, CALLS, 16, tools=[look, add], q="x")
