"""What annotations and values say of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, Required, TypedDict

import pytest

import sgc
from sgc.core import shapes
from sgc.ir import types
from sgc.runtime.executor.interface.argument_shapes import misfit, shown


class Part(TypedDict, total=False):
    a: Required[str]
    b: NotRequired[int]
    c: list[Part]


@dataclass
class Mail:
    body: str


class Unknown:
    pass


MAIL = {
    "type": "instance",
    "class": f"{Mail.__module__}:Mail",
    "properties": {"body": {"type": "string"}},
}
NOTHING: list[Any] = []
ONE = {"k": 1}
STR, INT = {"type": "string"}, {"type": "integer"}
OF = {
    "dict": (dict, {"type": "object"}),
    "dict of texts": (dict[str, str], {"type": "object", "additionalProperties": STR}),
    "dict of any": (dict[str, Any], {"type": "object"}),
    "mapping": (Mapping[str, int], {"type": "object", "additionalProperties": INT}),
    "list": (list, {"type": "array"}),
    "list of dicts": (list[dict], {"type": "array", "items": {"type": "object"}}),
    "sequence": (Sequence[str], {"type": "array", "items": STR}),
    "literal": (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    "optional": (str | None, {"anyOf": [STR, {"type": "null"}]}),
    "union": (str | int, {"anyOf": [STR, INT]}),
    "any": (Any, {}),
    "object": (object, {}),
    "any or none": (Any | None, {}),
    "literal of numbers": (Literal[1, 2], None),
    "numbers as keys": (dict[int, str], None),
    "a dataclass": (Mail, MAIL),
    "a list of a dataclass": (list[Mail], {"type": "array", "items": MAIL}),
    "a dataclass or none": (Mail | None, None),
    "a class": (Unknown, None),
    "a set": (set[str], None),
    "a tuple": (tuple[str, int], None),
}


@pytest.mark.parametrize("case", OF)
def test_annotations(case):
    annotation, schema = OF[case]
    assert shapes.of_annotation(annotation) == schema


def test_a_typed_dict_tells_each_key_and_ends_where_it_holds_itself():
    schema: Any = shapes.of_annotation(Part)
    assert schema["required"] == ["a"]
    assert schema["properties"]["b"] == INT
    assert shown(schema).startswith("{a: str, b: int, c: list[{a: str")
    assert (
        misfit({"a": "", "c": [{"a": "", "c": [{"a": 1}]}]}, schema).at == "['c'][0]['c'][0]['a']"
    )
    assert misfit({"b": 1}, schema).expected == "a dict with the key 'a'"


VALUES = {
    "texts": (["a", "b"], {"type": "array", "items": STR}),
    "nothing": ([], {"type": "array"}),
    "several": (["a", 1], {"type": "array"}),
    "a message": ({"role": "a", "content": "b"}, {"type": "object", "additionalProperties": STR}),
    "a row": ({"b": 1, "a": "x"}, {
        "type": "object", "properties": {"a": STR, "b": INT}, "required": ["a", "b"],
    }),
    "no row": ({}, {"type": "object"}),
    "a class": ([Mail("")], None),
    "a class within": ({"a": [Mail("")]}, None),
    "keys": ({1: "a"}, None),
}  # fmt: skip


@pytest.mark.parametrize("case", VALUES)
def test_values(case):
    value, schema = VALUES[case]
    assert shapes.of_value(value) == schema
    assert schema is None or misfit(value, schema) is None


def test_parameters_have_the_types_of_their_annotations():
    @sgc.function
    def p(
        s, a: list[dict[str, str]], b: list[list[str]], c: Literal["x", "y"] = "x",
        d: list[dict] = NOTHING, e: dict | None = None, f: dict = ONE,
        g: list[Literal["x"]] = NOTHING,
    ):  # fmt: skip
        s += "x"

    found = {p.name: (str(p.type), p.is_static) for p in p.signature.parameters}
    assert found == {
        "a": ("list[json]", False), "b": ("list[list[text]]", False), "c": ("choice", False),
        "d": ("list[json]", False), "e": ("json", False), "f": ("json", False),
        "g": ("list[text]", False),
    }  # fmt: skip
    assert p.signature.parameters[2].type == types.choice_of(("x", "y"))
