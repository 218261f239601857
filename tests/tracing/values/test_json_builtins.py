"""Builtins of values out of JSON, whose types are known only at run time."""

from __future__ import annotations

import json
import re

import pytest
from control_flow import agree, agree_or_refuse

import sgc
from sgc.errors import TraceError
from sgc.programs.program import Program
from sgc.tracing.tracer import trace

POOL = (
    '{"x": -3, "y": 2.345, "z": [4, 2]}', '{"x": 2, "y": 7, "z": "bca"}', '{"x": "k", "y": 1}',
    '{"x": 4, "y": 7.1, "z": []}', '{"x": null, "y": true}', "no",
)  # fmt: skip


def test_numbers_and_extremes():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        try:
            v = json.loads(s["a"])
        except ValueError:
            return "none"
        s += f"{abs(v['x'])} {'+' * min(v['x'], 20)} {round(v['y'], 1)} {max(3, v['x'])}"
        s += f"{max(len(q), v['x'], 3)} {min(v['z'])} {max(v, key=v.get)}"
        s += sgc.gen("b", max_tokens=3)
        return round(v["x"])

    agree(program, POOL, n=16, q="x")


def test_the_largest_of_lists_is_one_of_them():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        v = json.loads(s["a"])
        first = max(v, v[:1])
        first.append("!")
        s += str(v) + sgc.gen("b", max_tokens=3)
        return first

    compiled = Program(trace(program, is_full=False, leaves=True))
    agree_or_refuse(program, compiled, ("[]", "[1, 2]", "[3]", "no"), 12)


def test_a_parameter_of_a_generation_is_a_number():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        s += sgc.gen("b", max_tokens=3, seed=json.loads(s["a"]))

    with pytest.raises(TraceError, match="used as a number") as error:
        trace(program, is_full=True)
    assert "test_json_builtins.py" in error.value.where
    assert "write int(v)" in str(error.value)


def test_patterns_take_texts_and_raise_pythons_error_for_the_rest():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        try:
            v = json.loads(s["a"])
            found = re.findall("[a-c]+", v["z"])
        except (TypeError, ValueError, KeyError) as error:
            return f"{type(error).__name__}: {error}"
        m = re.search("[ab]", v["z"])
        return [found, m and m.group(), re.sub("b", "B", v["z"]), re.split("c", v["z"])]

    agree(program, (*POOL, '{"z": {}}', '{"z": 1.5}', '{"z": false}', '{"z": ""}'), n=24, q="x")


def test_patterns_raise_pythons_error_for_numbers_and_lists():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        found = []
        for what in (len(s["a"]), s["a"].split("b")):
            for use in (re.escape, re.compile("a").findall):
                try:
                    use(what)
                except TypeError as error:
                    found.append(str(error))
        return found

    agree(program, POOL, n=3, q="x")
