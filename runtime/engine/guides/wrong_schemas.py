"""Tells a JSON schema that is wrong from one that only cannot be enforced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from sgc.runtime.engine.guides.json_schemas import MAX_DEPTH

_TYPES = frozenset({"null", "boolean", "object", "array", "number", "integer", "string"})
_UNSATISFIABLE = "Unsatisfiable schema"  # the library's word for what no value can satisfy


def mistake_in(schema: Any, refusal: str) -> str:
    """What is wrong with a schema that the library refused, "" if it is a valid one.

    refusal: the library's reason, which tells whether no value can satisfy the schema.
    """
    for where, part in _parts(schema, "#", 0):
        if not isinstance(part, dict):
            return f"{where} must be a schema: an object, true or false"
        for name, value in part.items():
            expected, fits = _KEYWORDS.get(name, ("", _is_any))
            if not fits(value):
                return f"{where}: {name} must be {expected}"
        if "$ref" in part and not _is_found(part["$ref"], schema):
            return f"{where}: there is nothing at $ref {part['$ref'][:100]!r}"
    return refusal if _UNSATISFIABLE in refusal else ""


def _parts(value: Any, where: str, depth: int) -> Iterator[tuple[str, Any]]:
    """A schema and all schemas inside it, with their places; also what stands where a schema
    should."""
    if isinstance(value, bool) or depth > MAX_DEPTH:
        return
    yield where, value
    if not isinstance(value, dict):
        return
    for name, inner in value.items():
        if name in _NAMED and isinstance(inner, dict):
            for key, each in inner.items():
                yield from _parts(each, f"{where}/{name}/{key}", depth + 1)
        elif name in _LISTED and isinstance(inner, list):
            for i, each in enumerate(inner):
                yield from _parts(each, f"{where}/{name}/{i}", depth + 1)
        elif name in _SINGLE:
            yield from _parts(inner, f"{where}/{name}", depth + 1)


def _is_found(reference: str, root: Any) -> bool:
    """Whether there is something at a reference; true of one that is no path from the root."""
    if not reference.startswith("#/") or any(_is_resource(part) for _, part in _parts(root, "", 0)):
        return True
    found = root
    for step in unquote(reference[2:]).split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            return False
    return True


def _is_resource(part: Any) -> bool:
    """Whether references in it may be relative to its own address."""
    return isinstance(part, dict) and "$id" in part


def _is_any(value: Any) -> bool:
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value % 1 == 0


def _is_bound(value: Any) -> bool:
    return isinstance(value, int | float)  # a bool in older drafts


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_types(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)


def _are_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LISTED = frozenset({"anyOf", "allOf", "oneOf", "prefixItems", "items"})
_SINGLE = frozenset(
    {"items", "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains"}
    | {"propertyNames", "unevaluatedProperties", "unevaluatedItems"}
)
_COUNT = ("a whole number", _is_count)
_NUMBER = ("a number", _is_number)
_BOUND = ("a number", _is_bound)
_TEXT = ("a text", _is_text)
_SCHEMAS = ("a list of at least one schema", _are_schemas)
_KEYWORDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "type": (f"one or some of {', '.join(sorted(_TYPES))}", _are_types),
    **dict.fromkeys(_NAMED, ("an object of schemas", _is_object)),
    **dict.fromkeys(("anyOf", "allOf", "oneOf"), _SCHEMAS),
    "prefixItems": ("a list of schemas", _is_list),
    "enum": ("a list of values", _is_list),
    "required": ("a list of names", _are_texts),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _COUNT),
    **dict.fromkeys(("minProperties", "maxProperties"), _COUNT),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), _BOUND),
    **dict.fromkeys(("pattern", "format", "$ref"), _TEXT),
    "uniqueItems": ("true or false", lambda value: isinstance(value, bool)),
}
