"""Turns constraints into structured output: the part of a JSON schema that an API can enforce.

Keywords that an API does not know and that only narrow a schema are dropped, so that the API allows
more than the constraint; every reply is checked against the whole constraint afterwards. If other
keywords are unknown, there is no structured output, and the reply is only checked. Pure functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.run.options import DTYPES, REGEX_BOOL, REGEX_FLOAT, REGEX_INT

Json = dict[str, Any]

# Keywords that only narrow a schema: without one of them it allows more values.
_NARROWING = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"}
    | {"maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "contains"}
    | {"minContains", "maxContains", "minProperties", "maxProperties", "propertyNames"}
    | {"dependentRequired", "dependentSchemas", "not"}
)
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "$comment", "$schema", "$id", "deprecated"}
    | {"readOnly", "writeOnly"}
)
_SUBSCHEMAS = ("items", "additionalProperties")
_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_MAPS = ("properties", "$defs", "definitions", "patternProperties")
KEY = "value"
# Look-around and similar groups, escapes missing in some dialects, anchors, lazy repeats.
_ODD = re.compile(r"\(\?(?!:)|\\[^dwsDWSnrt.()\[\]{}*+?|^$/\\-]|\^|\$|[*+?}][?+]")


@dataclass(frozen=True, slots=True)
class Shape:
    """A structured output. unwrap: turns a reply's value into text; None: the reply is the text.

    is_strict: the API guarantees the schema. is_whole: the schema expresses the whole constraint.
    """

    schema: Json
    unwrap: Callable[[Any], str] | None = None
    is_strict: bool = True
    is_whole: bool = True

    def text_of(self, reply: str) -> str:
        """The text of a reply; raises ValueError if it is not of the shape."""
        if self.unwrap is None:
            return reply
        found = json.loads(reply)
        if not isinstance(found, dict) or KEY not in found:
            raise ValueError(f"no object with {KEY!r}")
        return self.unwrap(found[KEY])


class _Unsupported(Exception):
    """A schema that an API's structured output cannot express."""


def of_choices(choices: tuple[str, ...]) -> Shape:
    """The shape for one of some texts."""
    return Shape(_wrapped({"type": "string", "enum": list(choices)}), _text)


def of_regex(pattern: str, facts: Facts) -> Shape | None:
    """The shape for a pattern of `dtype`, a list of words, or a plain one if the API has them."""
    if pattern == REGEX_INT:
        return Shape(_wrapped({"type": "integer"}), _integer_text)
    if pattern == REGEX_FLOAT:
        return Shape(_wrapped({"type": "number"}), _number_text)
    if pattern == REGEX_BOOL:
        return Shape(_wrapped({"type": "boolean"}), _bool_text)
    if pattern == DTYPES["str"][0]:
        return None  # it includes the quotes, which JSON would escape
    words = alternatives(pattern)
    if words is not None:
        return of_choices(words)
    if facts.patterns and _is_plain(pattern):
        return Shape(_wrapped({"type": "string", "pattern": f"^(?:{pattern})$"}), _text)
    return None


def of_schema(schema: str, facts: Facts) -> Shape | None:
    """The shape for a schema; None if the API cannot express it, or a wider schema."""
    given = json.loads(schema)
    if not isinstance(given, dict):
        return None
    if facts.schema_words is None:
        return Shape(given)
    left_out: set[str] = set()
    try:
        found = _relaxed(given, facts, left_out)
    except _Unsupported:
        is_tried = facts.all_required and given.get("type") == "object"
        return Shape(given, is_strict=False) if is_tried else None
    is_whole = not left_out
    if found.get("type") == "object":
        return Shape(found, is_whole=is_whole)
    if "$ref" in json.dumps(found):
        return None  # wrapping would break the references
    return Shape(_wrapped(found), _json_text, is_whole=is_whole)


def _relaxed(schema: Any, facts: Facts, left_out: set[str]) -> Any:
    """The schema without unknown keywords that only narrow it. left_out: gets those dropped."""
    if isinstance(schema, bool):
        raise _Unsupported
    assert facts.schema_words is not None
    kept = {}
    for word, value in schema.items():
        if word in facts.schema_words:
            kept[word] = _inner(word, value, facts, left_out)
        elif word in _NARROWING:
            left_out.add(word)
        elif word not in _ANNOTATIONS:
            raise _Unsupported
    if kept.get("type") == "object" or "properties" in kept:
        _close(kept, facts)
    return kept


def _inner(word: str, value: Any, facts: Facts, left_out: set[str]) -> Any:
    if word in _SUBSCHEMAS and isinstance(value, Mapping):
        return _relaxed(value, facts, left_out)
    if word in _LISTS:
        return [_relaxed(each, facts, left_out) for each in value]
    if word in _MAPS:
        return {name: _relaxed(each, facts, left_out) for name, each in value.items()}
    return value


def _close(schema: Json, facts: Facts) -> None:
    """Closes an object: in sgc it has only listed properties, and APIs want that stated."""
    schema["type"] = "object"
    if schema.get("additionalProperties", False) is not False:
        raise _Unsupported
    schema["additionalProperties"] = False
    names = list(schema.setdefault("properties", {}))
    required = schema.setdefault("required", [])
    if facts.all_required and set(names) != set(required):
        raise _Unsupported


def _wrapped(schema: Json) -> Json:
    return {
        "type": "object",
        "properties": {KEY: schema},
        "required": [KEY],
        "additionalProperties": False,
    }


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"no text but {value!r}")
    return value


def _integer_text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"no whole number but {value!r}")
    return str(value)


def _number_text(value: Any) -> str:
    """Written without an exponent, which the pattern of floats does not allow."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"no number but {value!r}")
    return format(Decimal(repr(value)), "f")


def _bool_text(value: Any) -> str:
    if not isinstance(value, bool):
        raise ValueError(f"neither true nor false but {value!r}")
    return str(value)


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def alternatives(pattern: str) -> tuple[str, ...] | None:
    """The words of a pattern such as (yes|no)."""
    inner = re.fullmatch(r"\(?(?:\?:)?([^()\[\]{}.*+?^$\\]+)\)?", pattern)
    if inner is None or pattern.startswith("(") is not pattern.endswith(")"):
        return None
    words = tuple(inner[1].split("|"))
    is_list = len(words) > 1 and all(words) and len(set(words)) == len(words)
    return words if is_list else None


def _is_plain(pattern: str) -> bool:
    """Whether other regex dialects probably read the pattern as Python does."""
    return _ODD.search(pattern) is None
