"""Of tools' schemas the wrong ones are refused; those that cannot be held are, if strict."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sgc.runtime.engine.guides.wrong_schemas import mistake_in

HELLO = [{"role": "user", "content": "Hi"}]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "nothing at $ref '#/$defs/none'"),
    ({"properties": {"a": {"type": "foo"}}, "required": ["a"]}, "#/properties/a: type must be"),
    ({"properties": {"a": {"type": []}}, "required": ["a"]}, "#/properties/a: type must be"),
    ({"properties": {"a": 5}}, "#/properties/a must be a schema"),
    ({"properties": [{}]}, "properties must be an object"),
    ({"properties": {"a": {"anyOf": []}}, "required": ["a"]}, "anyOf must be a list"),
    ({"properties": {"a": {"enum": 3}}, "required": ["a"]}, "enum must be a list"),
    ({"properties": {"a": {"minLength": "x", "type": "string"}}}, "minLength must be a whole"),
    ({"properties": {"a": {"minimum": "x", "type": "integer"}}}, "minimum must be a number"),
    ({"properties": {"a": {"items": 3, "type": "array"}}}, "#/properties/a/items must be a schema"),
    ({"properties": {"a": {"pattern": 3, "type": "string"}}}, "pattern must be a text"),
    ({"properties": {"a": {}}, "required": "a"}, "required must be a list of names"),
    (
        {"properties": {"a": {"allOf": [{"type": "integer"}, {"type": "string"}]}},
         "required": ["a"]},
        "Unsatisfiable",
    ),
    ({"properties": {"a": {"enum": []}}, "required": ["a"]}, "Unsatisfiable"),
]  # fmt: skip
UNHELD: list[dict[str, Any]] = [
    {"properties": {"a": {"type": "array", "uniqueItems": True}}, "required": ["a"]},
    {"properties": {"a": {"not": {"type": "null"}}}, "required": ["a"]},
    {"properties": {"a": {"$ref": "#/$defs/x"}}, "required": ["a"], "propertyNames": {},
     "$defs": {"x": {"type": "integer", "x-more": {"required": 3}}}},
    {"patternProperties": {"a/b": {"type": "null"}}, "minProperties": 0, "contains": {},
     "allOf": [{"properties": {"a": {"$ref": "#/patternProperties/a~1b"}}}]},
]  # fmt: skip


def tool(schema: Any, **more: Any) -> dict[str, Any]:
    parameters = {"type": "object", **schema}
    return {"type": "function", "function": {"name": "f", "parameters": parameters, **more}}


@pytest.mark.parametrize(("schema", "said"), WRONG, ids=lambda value: str(value)[:60])
@pytest.mark.parametrize("more", [{}, {"strict": True}], ids=str)
def test_a_wrong_schema_is_refused(
    ask: Callable[..., Any], schema: Any, said: str, more: Any
) -> None:
    body = {"model": "fake", "messages": HELLO, "tools": [tool(schema, **more)], "max_tokens": 40}
    for choice in ("auto", "required"):
        answer = ask("/v1/chat/completions", {**body, "tool_choice": choice})
        assert answer.status == 400, answer.text
        assert answer.error["param"].startswith("tools[0].function.parameters")
        assert said in answer.error["message"]


@pytest.mark.parametrize("schema", UNHELD, ids=lambda value: str(value)[:60])
def test_one_that_cannot_be_held_is_any_object(ask: Callable[..., Any], schema: Any) -> None:
    body = {"model": "fake", "messages": HELLO, "tool_choice": "required", "max_tokens": 400}
    answer = ask("/v1/chat/completions", {**body, "tools": [tool(schema)], "seed": 1})
    assert answer.status == 200, answer.text
    choice = answer.json["choices"][0]
    if choice["finish_reason"] == "tool_calls":
        for call in choice["message"]["tool_calls"]:
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
    strict = {**body, "tools": [tool(schema, strict=True)]}
    assert ask("/v1/chat/completions", strict).status == 400


@pytest.mark.parametrize(
    "schema",
    [
        {"$id": "x", "$ref": "#/nowhere"},
        {"$ref": "#"},
        {"$ref": "#anchor"},
        {"$ref": "http://x/y"},
        {"$defs": {"a b": {}}, "allOf": [{"$ref": "#/$defs/a%20b"}, {"$ref": "#/allOf/0"}]},
        {"exclusiveMinimum": True, "minLength": 2.0, "required": [], "items": [{}, True]},
        {"const": {"type": 5}, "default": {"type": 5}, "discriminator": {"required": "x"}},
    ],
    ids=str,
)
def test_what_may_be_right_is_not_called_wrong(schema: Any) -> None:
    assert mistake_in(schema, "refused") == ""
