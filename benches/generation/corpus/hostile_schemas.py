"""Hostile JSON schemas, with a function for each kind; some are not valid schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from generation.corpus.hostile_drawing import KEYWORDS, WRONG_VALUES, Rng, corpus_of, size, word
from generation.corpus.hostile_patterns import PATTERNS, _mutated


def _object(properties: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **others}


def deep_schema(rng: Rng) -> Any:
    # Python's own json fails for deeper nesting.
    wrap = rng.choice(["object", "array", "anyOf", "allOf"])
    schema: Any = {"type": "integer"}
    for _ in range(size(rng, 400)):
        schema = _wrapped(wrap, schema)
    return schema


def _wrapped(wrap: str, schema: Any) -> Any:
    match wrap:
        case "object":
            return _object({"a": schema})
        case "array":
            return {"type": "array", "items": schema}
        case _:
            return {wrap: [schema, {"type": ["array", "integer", "object"]}]}


def many_properties(rng: Rng) -> Any:
    names = [f"{word(rng)}{index}" for index in range(size(rng, 5_000))]
    required = names if rng.random() < 0.3 else rng.sample(names, k=len(names) // 3)
    others = rng.choice([False, True, {"type": "integer"}])
    return _object(
        {name: {"type": rng.choice(["string", "integer", "number"])} for name in names},
        required=required,
        additionalProperties=others,
    )


def huge_enum(rng: Rng) -> Any:
    values = [word(rng, rng.randint(1, 30)) for _ in range(size(rng, 20_000))]
    return {"enum": [json.dumps(value) if rng.random() < 0.1 else value for value in values]}


def many_branches(rng: Rng) -> Any:
    return {
        rng.choice(["anyOf", "oneOf", "allOf"]): [
            _object({"kind": {"const": index}, word(rng): {"type": "string"}}, required=["kind"])
            for index in range(size(rng, 1_000))
        ]
    }


def all_of_any_of(rng: Rng) -> Any:
    # Expanded, this has width ** depth branches.
    width = rng.randint(2, 5)
    return {
        "allOf": [
            {"anyOf": [_object({f"p{part}": {"const": index}}) for index in range(width)]}
            for part in range(size(rng, 40))
        ]
    }


def endless_reference(rng: Rng) -> Any:
    return rng.choice(
        [
            {"$ref": "#"},
            {
                "$ref": "#/$defs/a",
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            },
            {"allOf": [{"$ref": "#"}, {"type": "integer"}]},
            {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
            {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
            _object({"a": {"$ref": "#"}}, required=["a"]),
            {"type": "object", "additionalProperties": {"$ref": "#"}, "minProperties": 1},
            {"oneOf": [{"$ref": "#/oneOf/1"}, {"$ref": "#/oneOf/0"}]},
        ]
    )


def reference_bomb(rng: Rng) -> Any:
    depth, width = size(rng, 60), rng.randint(2, 4)
    defs = {
        f"d{level}": _object({f"p{x}": {"$ref": f"#/$defs/d{level + 1}"} for x in range(width)})
        for level in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": {"type": "null"}}}


def all_of_bomb(rng: Rng) -> Any:
    # Inlining doubles at every level.
    depth = size(rng, 30)
    defs = {f"d{x}": {"allOf": [{"$ref": f"#/$defs/d{x + 1}"}] * 2} for x in range(depth)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{depth}": {"type": "integer", "minimum": 1}}}


def unsatisfiable(rng: Rng) -> Any:
    return rng.choice(
        [
            False,
            {"not": {}},
            {"enum": []},
            {"type": "integer", "minimum": 5, "maximum": 4},
            {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
            {"type": "string", "minLength": 5, "maxLength": 4},
            {"type": "string", "pattern": "^a$", "minLength": 5},
            {"allOf": [{"type": "integer"}, {"type": "string"}]},
            {"type": "array", "minItems": 3, "maxItems": 2},
            {"type": "array", "items": False, "minItems": 1},
            _object({"a": False}, required=["a"]),
            _object({}, required=["a"]),
            {"type": "integer", "multipleOf": 7, "minimum": 8, "maximum": 13},
            {"anyOf": [False, {"const": 1, "type": "string"}]},
        ]
    )


def giant_count(rng: Rng) -> Any:
    count = rng.choice([1_000, 20_000, 10**6, 2**31, 2**32, 2**63, 2**64, 10**30])
    return rng.choice(
        [
            {"type": "array", "minItems": count},
            {"type": "array", "items": {"type": "integer"}, "minItems": count, "maxItems": count},
            {"type": "array", "items": {"enum": ["a", "ab"]}, "maxItems": count},
            {"type": "string", "maxLength": count},
            {"type": "string", "minLength": count},
            {"type": "string", "minLength": count, "maxLength": count},
            {"type": "string", "pattern": "^[a-z]*$", "maxLength": count},
            {"type": "object", "additionalProperties": True, "minProperties": count},
            {"type": "object", "additionalProperties": {"type": "null"}, "maxProperties": count},
            {"type": "integer", "minimum": -count, "maximum": count},
            {"type": "integer", "multipleOf": count},
            {"type": "number", "multipleOf": 1 / count},
        ]
    )


def nested_arrays_counted(rng: Rng) -> Any:
    schema: Any = {"type": "string", "maxLength": 50}
    for _ in range(rng.randint(2, 6)):
        schema = {"type": "array", "items": schema, "minItems": 2, "maxItems": size(rng, 100) + 2}
    return schema


def odd_numbers(rng: Rng) -> Any:
    bounds = [rng.choice([-1, 1]) * 10 ** rng.uniform(-320, 308) for _ in range(2)]
    return {
        "type": rng.choice(["number", "integer"]),
        rng.choice(["minimum", "exclusiveMinimum"]): min(bounds),
        rng.choice(["maximum", "exclusiveMaximum"]): max(bounds),
    }


def odd_multiples(rng: Rng) -> Any:
    divisor = rng.choice([0, -1, 1e-300, 1e300, 7919, 999_983, 0.1 + 0.2, 2**63])
    schema = {"type": rng.choice(["number", "integer"]), "multipleOf": divisor}
    return (
        {"allOf": [schema, {"multipleOf": rng.choice([3, 997, 0.7])}]}
        if rng.random() < 0.5
        else schema
    )


def hostile_pattern_schema(rng: Rng) -> Any:
    pattern = rng.choice(PATTERNS)(rng)
    return rng.choice(
        [
            {"type": "string", "pattern": pattern},
            {"type": "string", "pattern": pattern, "maxLength": size(rng, 10_000)},
            {"type": "object", "patternProperties": {pattern: {}}, "additionalProperties": False},
            {
                "type": "string",
                "allOf": [{"pattern": pattern}, {"pattern": rng.choice(PATTERNS)(rng)}],
            },
        ]
    )


def many_pattern_properties(rng: Rng) -> Any:
    patterns: dict[str, Any] = {
        f"^{word(rng, 3)}.*{word(rng, 1)}": {} for _ in range(size(rng, 300))
    }
    return {
        "type": "object",
        "patternProperties": patterns,
        "additionalProperties": {"type": "null"},
    }


def unknown_keywords(rng: Rng) -> Any:
    return {
        "type": "string",
        word(rng): 1,
        rng.choice(["contains", "not", "if", "uniqueItems"]): {},
    }


def wrong_types(rng: Rng) -> Any:
    return {
        keyword: rng.choice(WRONG_VALUES) for keyword in rng.sample(KEYWORDS, k=rng.randint(1, 3))
    }


def no_schema(rng: Rng) -> Any:
    return rng.choice(WRONG_VALUES)


def outside_reference(rng: Rng) -> Any:
    targets = ("http://127.0.0.1:1/s", "file:///etc/hostname", "../x.json", "#/$defs/none", "#nope")
    return {"$ref": rng.choice((*targets, "urn:x", "https://json-schema.org/draft-07/schema#"))}


def odd_names(rng: Rng) -> Any:
    names = [
        "\0",
        '"',
        "\\",
        "\n",
        "é" * 1000,
        "\ud7ff",
        "a" * size(rng, 50_000),
        "</s>",
        "\u2028",
    ]
    return _object({name: {"const": name} for name in rng.sample(names, k=4)})


def mutated_schema(rng: Rng) -> Any:
    text = json.dumps(rng.choice(corpus_of("schemas.json", "schema")))
    for _ in range(20):
        try:
            return json.loads(_mutated(rng, text))
        except ValueError:
            continue
    return {}


def crossed_schemas(rng: Rng) -> Any:
    every = [
        schema for schema in corpus_of("schemas.json", "schema") if "$ref" not in json.dumps(schema)
    ]
    return {rng.choice(["anyOf", "allOf"]): rng.sample(every, k=rng.randint(2, 20))}


SCHEMAS: tuple[Callable[[Rng], Any], ...] = (
    deep_schema,
    many_properties,
    huge_enum,
    many_branches,
    all_of_any_of,
    endless_reference,
    reference_bomb,
    all_of_bomb,
    unsatisfiable,
    giant_count,
    nested_arrays_counted,
    odd_numbers,
    odd_multiples,
    hostile_pattern_schema,
    many_pattern_properties,
    unknown_keywords,
    wrong_types,
    no_schema,
    outside_reference,
    odd_names,
    mutated_schema,
    crossed_schemas,
)
