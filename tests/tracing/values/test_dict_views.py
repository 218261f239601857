"""The keys, values and items of dicts known only at run time are views, and no lists: they compare
with sets, have the operators of sets, and cannot be indexed. Nothing here relies on the trace
check."""

from __future__ import annotations

import json
from typing import Any

import pytest
from control_flow import agree, agree_or_refuse

import sgc
from sgc.errors import TraceError
from sgc.programs.program import Program
from sgc.tracing.tracer import trace

REPLIES = (
    "{}", '{"name": "a", "age": 3}', '{"age": 2.5, "name": null}', '{"z": 1, "name": "b"}',
)  # fmt: skip
KNOWN = {"name", "age"}


def compared(s: Any, q: str) -> Any:
    data = json.loads(s["a"])
    keys = data.keys()
    s += q
    return (
        keys == KNOWN, KNOWN == keys, keys != KNOWN, keys <= KNOWN, keys == ["name"],  # noqa: SIM300
    )  # fmt: skip


def with_each_other(s: Any, q: str) -> Any:
    data = json.loads(s["a"])
    keys, other = data.keys(), {"age": 1, "name": q}
    return keys == other.keys(), data.values() == data.values()


def operated_on(s: Any, q: str) -> Any:
    data = json.loads(s["a"])
    keys = data.keys()
    s += q
    return sorted(keys - KNOWN), sorted(keys | {q}), sorted(KNOWN & keys), sorted(KNOWN ^ keys)


def written_as_json(s: Any, q: str) -> Any:
    data = json.loads(s["a"])
    s += q
    try:
        found = json.dumps(data.keys())
    except TypeError as error:
        found = str(error)
    try:
        found += json.dumps({q: [data.values()]})
    except TypeError as error:
        found += str(error)
    return found + json.dumps(list(data))


def shown(s: Any, q: str) -> Any:
    keys = json.loads(s["a"]).keys()
    s += f"{q}{keys}"
    return str(keys), isinstance(keys, list), type(keys) is list


def no_lists(s: Any, q: str) -> Any:
    keys = json.loads(s["a"]).keys()
    found = []
    for how in range(3):
        try:
            found.append(keys[0] if how == 0 else keys + [q] if how == 1 else [q] + keys)  # noqa: RUF005
        except TypeError as e:
            found.append(str(e))
    return found


def gone_over(s: Any, q: str) -> Any:
    data = json.loads(s["a"])
    keys, found = data.keys(), [q]
    for key in keys:
        found.append(key)
    found += keys
    listed = [*keys, *list(keys)]
    listed.append("end")
    return found, listed, len(keys), "name" in keys, sorted(keys)


def of_two_paths(s: Any, q: str) -> Any:
    one, two = json.loads(s["a"]), {"age": 1, "name": q}
    keys = one.keys() if "z" in s["a"] else two.keys()
    return keys == KNOWN, sorted(keys)


def matched(s: Any, q: str) -> Any:
    match json.loads(s["a"]).keys():
        case [x]:
            return x
        case _:
            return q


def with_argument(s: Any, q: str, data: dict[str, int]) -> Any:
    s += q + sgc.gen("a", max_tokens=20)
    keys = data.keys()
    return keys == KNOWN, str(keys), isinstance(keys, list), sorted(keys - {"age"})


def _program(function: Any) -> Any:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=20)
        return function(s, q)

    return program


WHOLE = [
    compared, with_each_other, operated_on, written_as_json, shown, no_lists, gone_over,
    of_two_paths, matched,
]  # fmt: skip


@pytest.mark.parametrize("function", WHOLE, ids=lambda each: each.__name__)
def test_views_are_as_in_python(function: Any) -> None:
    agree(_program(function), REPLIES, q="z")


def test_views_of_arguments_are_as_in_python() -> None:
    program = sgc.function(with_argument)
    graph = trace(program, is_full=True)
    for data in ({}, {"name": 1, "age": 2}, {"z": 3}):
        agree(program, ("x", "y"), graph=graph, q="z", data=data)


def changed_since(s: Any, q: str) -> Any:
    data = dict(json.loads(s["a"]))
    keys = data.keys()
    data["new"] = q
    return sorted(keys)


def changed_on_one_path(s: Any, q: str) -> Any:
    one = dict(json.loads(s["a"]))
    two = {"name": q, **one}
    keys = one.keys() if "z" in s["a"] else two.keys()
    two["age"] = 5
    return keys == KNOWN


def given(s: Any, q: str) -> Any:
    return json.loads(s["a"]).keys()


REFUSED = [changed_since, changed_on_one_path, given]


@pytest.mark.parametrize("function", REFUSED, ids=lambda each: each.__name__)
def test_what_would_not_be_as_in_python_is_refused(function: Any) -> None:
    program = _program(function)
    try:
        compiled = Program(trace(program, is_full=True))
    except TraceError:
        return
    agree_or_refuse(program, compiled, REPLIES, 12)
