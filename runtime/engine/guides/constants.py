"""The values of `const` and `enum` in JSON schemas, which the constraint library reads as doubles.

A number that it would write back as another one is refused by name. If a whole schema is such a
list of values, it is written as a pattern of their texts instead, which is exact.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

CONSTANTS = ("const", "enum")
MAX_INTEGER = 2**63  # the library has integers of 64 bits; at the lowest of them its process ends
MAX_FLOAT = 2**53  # it writes larger ones with zeros in place of digits
MAX_POWER = 22  # powers of ten up to this one are exact as doubles
_KNOWN = frozenset({*CONSTANTS, "type", "title", "description", "default", "examples", "$comment"})
# Control characters without a short escape in JSON, which the library cannot write in a value.
_UNWRITTEN = frozenset(map(chr, (*range(0x20), 0x7F))) - frozenset("\b\f\n\r\t")


def inexact(part: Mapping[str, Any]) -> int | float | None:
    """The first number in a schema's constants that the library would not write back exactly."""
    given = [part[name] for name in CONSTANTS if name in part]
    return next((each for each in _leaves(given) if _is_number(each) and not _is_exact(each)), None)


def texts_of(schema: Any) -> list[str] | None:
    """The texts of a schema that only lists texts and numbers, if the library cannot write one of
    them; None for every other schema."""
    if not isinstance(schema, dict) or schema.keys() - _KNOWN:
        return None
    if len(schema.keys() & set(CONSTANTS)) != 1:
        return None
    values = schema["enum"] if "enum" in schema else [schema["const"]]
    types = schema.get("type", list(_TYPES))
    types = [types] if isinstance(types, str) else types
    if not isinstance(values, list) or not all(map(_is_plain, values)):
        return None
    if all(map(_is_written, values)) or not isinstance(types, list):
        return None
    if not all(isinstance(name, str) and name in _TYPES for name in types):
        return None
    fitting = [each for each in values if any(_TYPES[name](each) for name in types)]
    return [json.dumps(each, ensure_ascii=False) for each in fitting]


def _leaves(value: Any) -> Iterator[Any]:
    """The values within a value that hold no others."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            waiting += reversed(found.values())
        elif isinstance(found, list):
            waiting += reversed(found)
        else:
            yield found


def _is_plain(value: Any) -> bool:
    """Whether it is no object, no list, and no number that JSON does not have."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def _is_written(value: Any) -> bool:
    if isinstance(value, str):
        return _UNWRITTEN.isdisjoint(value)
    return not _is_number(value) or _is_exact(value)


def _is_exact(number: int | float) -> bool:
    """Whether the library reads a number's text as the same number. It multiplies or divides the
    digits by a power of ten, which is exact if both of them are doubles."""
    most = MAX_FLOAT if isinstance(number, float) else MAX_INTEGER
    if not abs(number) < most:  # NaN is not
        return False
    mantissa, _, exponent = json.dumps(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = int(whole + fraction)
    return float(digits) == digits and abs(int(exponent or 0) - len(fraction)) <= MAX_POWER


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value % 1 == 0,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: False,
    "object": lambda value: False,
}
