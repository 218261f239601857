"""Schemas that replies are held to: nothing is fetched, nothing takes for ever."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from executor.free_backend import Free, ask, within
from waiting import BOUND_S

import sgc
from sgc.errors import UsageError
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.patterns import timed_regex
from sgc.runtime.executor.patterns.checked_constraints import MAX_TRIES, ConstraintFailed
from sgc.runtime.executor.patterns.schemas import schema_check


@sgc.function
def of_schema(s, schema):  # as an argument, or compiling would look at it first
    s += "a" + sgc.gen("x", json_schema=schema)


def check(schema: Any, reply: str) -> str:
    graph = of_schema.compile(check=False).graph
    run = run_graph(graph, Free(reply), {"schema": json.dumps(schema)}, None)
    return str(asyncio.run(asyncio.wait_for(run, BOUND_S))["x"])


@pytest.mark.parametrize("ref", ["http://127.0.0.1:1/s.json", "FILE", "#/nope", "other.json"])
def test_nothing_is_fetched(tmp_path, ref):
    (tmp_path / "s.json").write_text('{"type": "integer"}')
    ref = (tmp_path / "s.json").as_uri() if ref == "FILE" else ref
    with pytest.raises(UsageError, match=r"refers to .* not in it") as caught:
        check({"$ref": ref}, "42")
    assert ref.removeprefix("#") in str(caught.value)


def test_references_inside_work():
    schema = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}
    assert check(schema, "42") == "42"
    with pytest.raises(ConstraintFailed):
        check(schema, '"x"')


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("5", "an object or a bool"),
        ("[]", "an object or a bool"),
        ('"x"', "an object or a bool"),
        ("null", "an object or a bool"),
        ("{", "is invalid"),
        ("[" * 100_000, "is invalid"),
        ('{"type": "nope"}', "is invalid"),
        ('{"pattern": "("}', "is invalid"),
        ('{"$schema": 5}', "is invalid"),
        ('{"$schema": ["a"]}', "is invalid"),
        ('{"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}', "top"),
        ('{"patternProperties": {}, "allOf": [{"unevaluatedProperties": false}]}', "both"),
    ],
)
def test_schemas_that_are_none(schema, words):
    with pytest.raises(UsageError, match=words):
        schema_check(schema)


@pytest.mark.parametrize(
    ("schema", "reply"), [({}, "[" * 100_000), ({"$ref": "#"}, "1"), ({}, "1" * 10_000)]
)
def test_a_reply_that_is_too_deep_is_a_failed_try(schema, reply):
    backend = Free(reply)
    with pytest.raises(ConstraintFailed):
        ask(backend, json_schema=json.dumps(schema))
    assert len(backend.samplings) == MAX_TRIES


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"k": {"pattern": "^(a|aa)+$"}}},
        {"patternProperties": {"^(a|aa)+$": False}},
        {"patternProperties": {"^(a|aa)+$": True}, "additionalProperties": False},
    ],
)
def test_patterns_in_a_schema_cannot_take_for_ever(schema, monkeypatch):
    monkeypatch.setattr(timed_regex, "TIMEOUT_S", 0.1)
    meets = schema_check(json.dumps(schema))
    hard = "a" * 60 + "!"
    failed = within(lambda: meets(json.dumps({"k": hard, hard: 1})))
    assert type(failed) is UsageError
    assert "cannot be checked" in str(failed)


def test_keywords_with_patterns_check_what_jsonschema_checks():
    import jsonschema

    parts = [
        {"properties": {"a": {"pattern": "^x"}}},
        {"patternProperties": {"^[ab]$": {"type": "string"}, "z": False}},
        {"additionalProperties": False},
        {"additionalProperties": {"type": "integer"}},
        {"additionalProperties": True},
    ]
    values = [{}, 3, "x", {"a": "x"}, {"a": "y"}, {"b": 1}, {"c": 1}, {"c": "x"}, {"z": 1}]
    values += [{"a": "x", "b": "x", "c": 1}]
    schemas = [{**first, **second} for first in parts for second in parts]
    for schema in schemas:
        meets = schema_check(json.dumps(schema))
        plain = jsonschema.Draft202012Validator(schema)
        assert [meets(json.dumps(v)) for v in values] == [plain.is_valid(v) for v in values]
