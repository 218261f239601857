"""Data known only at run time beside what is computed of a library's objects, which are known while
tracing and no data: an `inspect.Signature` tells which arguments a function takes."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
from control_flow import agree

import sgc

REPLIES = (
    "{}", '{"name": "a", "age": 3}', '{"age": 2.5, "name": null}', '{"z": 1, "name": "b"}',
    '["name", "age"]', "5", '"x"', "null",
)  # fmt: skip


def call(name: str, age: int = 3) -> str:
    return name * age


call.__annotations__ = {"name": str, "age": int}
SIGNATURE = inspect.signature(call)


def missing_and_unknown(s: Any, data: Any) -> Any:
    signature = inspect.signature(call)
    if extra := set(data) - set(signature.parameters):
        return sorted(extra)
    return sorted(set(SIGNATURE.parameters) - set(data))


def compared(s: Any, data: Any) -> Any:
    given = frozenset(data)
    return given == frozenset(SIGNATURE.parameters), tuple(data) == tuple(SIGNATURE.parameters)


def looked_up(s: Any, data: Any) -> Any:
    signature = inspect.signature(call)
    for key in data:
        if key not in signature.parameters:
            return f"unknown {key}"
        if not isinstance(data[key], signature.parameters[key].annotation):
            return f"{key} is no {signature.parameters[key].annotation.__name__}"
    return call(**data)


def listed(s: Any, data: Any) -> Any:
    return [key for key in data if key not in SIGNATURE.parameters]


def of_type(s: Any, data: Any) -> Any:
    signature = inspect.signature(call)
    return {p.name: isinstance(data[p.name], p.annotation) for p in signature.parameters.values()}


def counted(s: Any, data: Any) -> Any:
    s += str(len(SIGNATURE.parameters) - len(data))
    return ", ".join(sorted(set(SIGNATURE.parameters) | set(data)))


def _program(function: Any) -> Any:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=20)
        return function(s, json.loads(s["a"]))

    return program


WHOLE = [missing_and_unknown, compared, looked_up, listed, of_type, counted]


@pytest.mark.parametrize("function", WHOLE, ids=lambda each: each.__name__)
def test_data_is_checked_against_a_signature(function: Any) -> None:
    agree(_program(function), REPLIES, n=24, q="z")


def of_tuples_and_sets(s: Any, data: Any) -> Any:
    row, words = tuple(data), set(data)
    s += "x"
    return (
        row == ("name", "age"), ("name", "age") == row,  # noqa: SIM300
        row == ["name", "age"], row != (1,),
        words == {"name", "age"}, words == ["name"], words != {"age"},
    )  # fmt: skip


def test_values_of_code_compare_with_tuples_and_sets() -> None:
    agree(_program(of_tuples_and_sets), REPLIES, n=24, q="z")
