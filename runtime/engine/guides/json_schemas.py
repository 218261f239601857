"""Prepares JSON schemas for the constraint library: checked, closed, in one layout.

This module refuses schemas on which the library would hang or crash, or which it reads differently
from a validator (found by fuzzing; docs/generation.md). The library itself refuses keywords that it
does not know.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from sgc.runtime.engine.guides.constants import inexact
from sgc.runtime.engine.guides.python_regex import PatternError, search
from sgc.runtime.engine.text import strict_json

MAX_DEPTH = 64
MAX_PATTERN_CHARS = 8192  # of all patterns together
MAX_PATTERN_PROPERTIES = 32  # of one object
MAX_ALTERNATIVES = 128  # of the parts of an allOf, multiplied
MAX_BOUND = 2**53  # the library counts in doubles; larger bounds are wrong or end the process
MIN_BOUND = 1e-12
MULTIPLES = (1e-4, 10_000.0)
MAX_MULTIPLES = 10_000.0  # the product over a schema

# The layout of `json.dumps`, which also leaves the model the fewest tokens to choose. Without \u
# escapes a name has one spelling, so that no value can escape its property's schema.
_ESCAPES = {"json_allowed_escapes": 'nrbtf\\"'}
_FIXED = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
_FLEXIBLE = {"whitespace_flexible": True}
_OPENING = frozenset({"additionalProperties", "patternProperties", "unevaluatedProperties"})
_JOINED = frozenset({"allOf", "anyOf", "oneOf", "$ref", "if", "dependentSchemas"})
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"}
)
# Keys whose value maps names to schemas, and keys whose value is data, not a schema.
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA = frozenset({"const", "enum", "default", "examples", "required", "dependentRequired"})


class SchemaError(ValueError):
    """Why nothing can be generated under a schema."""


def read(text: str) -> Any:
    """The schema in a text; raises SchemaError."""
    try:
        return strict_json.load(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"is not valid JSON: {error}") from error


def prepared(schema: Any) -> dict[str, Any]:
    """The schema for the library, which changes the given one; raises SchemaError."""
    if schema is False:
        raise SchemaError("is false, which allows nothing")
    if schema is True:
        schema = {}
    if not isinstance(schema, dict):
        raise SchemaError("must be an object or a bool")
    flexible = _asks_for_space(schema.pop("x-guidance", {}))
    parts = list(_schemas(schema))
    for part in parts:
        _check(part)
    _check_together(parts)
    is_whole = not any(map(_is_joined, parts))
    for part in parts:
        _simplify(part, is_whole)
    return {**schema, "x-guidance": _ESCAPES | (_FLEXIBLE if flexible else _FIXED)}


def _asks_for_space(asked: Any) -> bool:
    """Whether the schema asks for flexible white space, its only layout option."""
    if not isinstance(asked, dict) or asked.keys() - {"whitespace_flexible"}:
        raise SchemaError('may say only "whitespace_flexible" in its "x-guidance"')
    return bool(asked.get("whitespace_flexible"))


def _schemas(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """A schema and all schemas inside it."""
    if depth > MAX_DEPTH:
        raise SchemaError(f"is nested more than {MAX_DEPTH} deep")
    if isinstance(value, list):
        for item in value:
            yield from _schemas(item, depth + 1)
    if not isinstance(value, dict):
        return
    yield value
    for key, inner in value.items():
        if key in _NAMED and isinstance(inner, dict):
            for named in inner.values():
                yield from _schemas(named, depth + 1)
        elif key not in _DATA:
            yield from _schemas(inner, depth + 1)


def _check(part: Mapping[str, Any]) -> None:
    if "x-guidance" in part:
        raise SchemaError('can have "x-guidance" only at the top')
    for name in _NUMBERS:
        bound = _number(part.get(name))
        if bound is not None and bound != 0 and not MIN_BOUND <= abs(bound) <= MAX_BOUND:
            raise SchemaError(
                f"has {name} {bound:g}, beyond the range that can be enforced exactly"
            )
    multiple = _number(part.get("multipleOf"))
    if multiple is not None and not MULTIPLES[0] <= multiple <= MULTIPLES[1]:
        raise SchemaError(f"has multipleOf {multiple}; from {MULTIPLES[0]:g} to {MULTIPLES[1]:g}")
    number = inexact(part)
    if number is not None:
        raise SchemaError(
            f"has {_shown(number)} among its constants, which within a schema cannot be written "
            "exactly: numbers are doubles there; make it a text"
        )
    patterned = part.get("patternProperties")
    if isinstance(patterned, dict) and len(patterned) > MAX_PATTERN_PROPERTIES:
        raise SchemaError(f"has an object of over {MAX_PATTERN_PROPERTIES} patternProperties")


def _shown(number: int | float) -> str:
    text = str(number)
    return text if len(text) <= 40 else f"a number of {len(text)} digits"


def _number(value: Any) -> float | None:
    """A number in a schema; infinity if it is too large for a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _check_together(parts: list[dict[str, Any]]) -> None:
    """Checks the limits that hold for all parts together."""
    multiples = filter(None, [_number(part.get("multipleOf")) for part in parts])
    if math.prod(max(each, 1 / each) for each in multiples) > MAX_MULTIPLES:
        raise SchemaError("has too many, or too large, multipleOf together")
    if sum(map(_n_pattern_chars, parts)) > MAX_PATTERN_CHARS:
        raise SchemaError(f"has over {MAX_PATTERN_CHARS} characters of patterns")
    for part in parts:
        joined = part.get("allOf")
        if isinstance(joined, list) and math.prod(map(_n_alternatives, joined)) > MAX_ALTERNATIVES:
            raise SchemaError(f"has an allOf of over {MAX_ALTERNATIVES} combinations")


def n_pattern_chars(schema: Any) -> int:
    """The characters of all patterns in a schema; raises SchemaError if it is too deep."""
    return sum(map(_n_pattern_chars, _schemas(schema)))


def _n_pattern_chars(part: Mapping[str, Any]) -> int:
    named = part.get("patternProperties")
    own = part.get("pattern")
    return sum(map(len, named if isinstance(named, dict) else ())) + (
        len(own) if isinstance(own, str) else 0
    )


def _n_alternatives(part: Any) -> int:
    arms = [part.get(key) for key in ("anyOf", "oneOf")] if isinstance(part, dict) else []
    return math.prod(len(each) for each in arms if isinstance(each, list) and each)


def _simplify(part: dict[str, Any], is_whole: bool) -> None:
    """Normalises a part, and closes an object that lists its properties."""
    if isinstance(part.get("format"), str) and part["format"] not in _FORMATS:
        del part["format"]  # only an annotation in JSON Schema
    if isinstance(part.get("pattern"), str):
        part["pattern"] = _searched(part["pattern"])
    if isinstance(part.get("patternProperties"), dict):
        named = part["patternProperties"]
        part["patternProperties"] = {_searched(text): inner for text, inner in named.items()}
        if len(part["patternProperties"]) < len(named):
            raise SchemaError("has an object with two equal patternProperties")
    if is_whole and _lists_all(part) and not _OPENING & part.keys():
        part["additionalProperties"] = False


def _is_joined(part: Mapping[str, Any]) -> bool:
    """Whether an object is described in several places, each of which is incomplete."""
    return "allOf" in part or ("properties" in part and bool(_JOINED & part.keys()))


def _lists_all(part: Mapping[str, Any]) -> bool:
    """Whether it lists its properties, the required ones among them."""
    listed, required = part.get("properties"), part.get("required", [])
    if not isinstance(listed, dict) or not isinstance(required, list):
        return False
    return all(name in listed for name in required if isinstance(name, str))


def _searched(pattern: str) -> str:
    try:
        return search(pattern)
    except PatternError as error:
        raise SchemaError(f"has the pattern {pattern[:60]!r}, which {error}") from error
