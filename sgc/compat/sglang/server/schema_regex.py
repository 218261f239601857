"""A JSON schema as a regular expression: `build_regex_from_object` of SGLang's server package.

For programs that pass `regex=build_regex_from_object(Model)`; `gen(json_schema=Model)` is better.
Objects have their keys in the schema's order. A schema that a regex cannot express (recursion) or
that is not supported is a UsageError, never a looser pattern, except for numeric bounds and
`uniqueItems`, which are left out as elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from sgc.errors import UsageError
from sgc.lang.constraints import schema_text

SPACE = "[ ]?"  # the default pattern between tokens
MAX_DEPTH = 64  # of references
ANY_DEPTH = 2  # of values that the schema does not restrict

_CHAR = r'([^"\\\x00-\x1F\x7F-\x9F]|\\["\\/bfnrt])'
_INTEGER = "(-)?(0|[1-9][0-9]*)"
_SCALARS = {
    "string": f'"{_CHAR}*"',
    "integer": _INTEGER,
    "number": rf"({_INTEGER})(\.[0-9]+)?([eE][+-][0-9]+)?",
    "boolean": "(true|false)",
    "null": "null",
}
_FORMATS = {
    "date": r'"(?:\d{4})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[1-2][0-9]|3[0-1])"',
    "time": r'"(2[0-3]|[01][0-9]):([0-5][0-9]):([0-5][0-9])(\.[0-9]+)?(Z)?"',
    "uuid": '"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"',
    "date-time": r'"(-?(?:[1-9][0-9]*)?[0-9]{4})-(1[0-2]|0[1-9])-(3[01]|0[1-9]|[12][0-9])'
    r'T(2[0-3]|[01][0-9]):([0-5][0-9]):([0-5][0-9])(\.[0-9]{3})?(Z)?"',
}


def build_regex_from_object(object: Any, whitespace_pattern: str | None = None) -> str:
    """The regex for JSON of a schema, which is a pydantic model, a dict, or JSON text.

    whitespace_pattern: the pattern between tokens, instead of at most one space.
    """
    schema = json.loads(schema_text(object))
    return _Writer(schema, SPACE if whitespace_pattern is None else whitespace_pattern).of(schema)


def _escaped(text: str) -> str:
    return re.sub(r"([\\.+*?()|\[\]{}^$#&~-])", r"\\\1", text)


def _literal(value: Any) -> str:
    return _escaped(json.dumps(value, ensure_ascii=False))


class _Writer:
    def __init__(self, root: Any, space: str) -> None:
        self._root = root
        self._space = space
        self._depth = 0

    def of(self, schema: Any) -> str:
        """The pattern of a schema, by the first keyword of `_KEYWORDS` that it has."""
        if schema is True:
            schema = {}
        if not isinstance(schema, Mapping):
            raise UsageError(f"a JSON schema must be an object, found {schema!r}")
        for keyword, write in self._KEYWORDS.items():
            if keyword in schema:
                return write(self, schema)
        return self._any(ANY_DEPTH)

    def _properties(self, schema: Mapping[str, Any]) -> str:
        required = schema.get("required", [])
        pairs = [
            (name in required, f"{self._space}{_literal(name)}{self._space}:{self._space}{value}")
            for name, value in ((n, self.of(s)) for n, s in schema["properties"].items())
        ]
        return rf"\{{{self._sequence(pairs)}{self._space}\}}"

    def _sequence(self, pairs: list[tuple[bool, str]]) -> str:
        """The pairs, with commas between those that are present."""
        before = [f"{pair}{self._space}," for _, pair in pairs]
        last = max((i for i, (is_required, _) in enumerate(pairs) if is_required), default=None)
        if last is None:  # each may be the last pair present
            some = (
                "".join(f"({each})?" for each in before[:i]) + pair
                for i, (_, pair) in enumerate(pairs)
            )
            return f"({'|'.join(some)})?"
        head = (
            each if is_required else f"({each})?"
            for (is_required, _), each in zip(pairs[:last], before, strict=False)
        )
        tail = (f"({self._space},{pair})?" for _, pair in pairs[last + 1 :])
        return "".join(head) + pairs[last][1] + "".join(tail)

    def _all_of(self, schema: Mapping[str, Any]) -> str:
        if len(schema["allOf"]) != 1:
            raise UsageError("a regex cannot say allOf of several schemas")
        return f"({self.of(schema['allOf'][0])})"

    def _any_of(self, schema: Mapping[str, Any]) -> str:
        return f"({'|'.join(self.of(each) for each in schema['anyOf'])})"

    def _one_of(self, schema: Mapping[str, Any]) -> str:
        return self._alternatives(self.of(each) for each in schema["oneOf"])

    def _alternatives(self, patterns: Any) -> str:
        return f"({'|'.join(f'(?:{each})' for each in patterns)})"

    def _prefix_items(self, schema: Mapping[str, Any]) -> str:
        between = f"{self._space},{self._space}"
        items = between.join(self.of(each) for each in schema["prefixItems"])
        return rf"\[{self._space}{items}{self._space}\]"

    def _enum(self, schema: Mapping[str, Any]) -> str:
        return f"({'|'.join(_literal(value) for value in schema['enum'])})"

    def _const(self, schema: Mapping[str, Any]) -> str:
        return _literal(schema["const"])

    def _reference(self, schema: Mapping[str, Any]) -> str:
        name = schema["$ref"]
        target: Any = self._root
        for part in name.removeprefix("#").strip("/").split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or (key and key not in target):
                raise UsageError(f"the JSON schema has nothing at {name!r}")
            target = target[key] if key else target
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UsageError(f"the JSON schema is recursive at {name!r}, which no regex can say")
        try:
            return self.of(target)
        finally:
            self._depth -= 1

    def _type(self, schema: Mapping[str, Any]) -> str:
        kind = schema["type"]
        if isinstance(kind, list):
            return self._alternatives(self.of({**schema, "type": each}) for each in kind)
        if kind == "string":
            return self._string(schema)
        if kind == "array":
            return self._array(schema)
        if kind == "object":
            values = schema.get("additionalProperties", True)
            return self._map(self._any(ANY_DEPTH - 1) if values in (True, {}) else self.of(values))
        if kind not in _SCALARS:
            raise UsageError(f"a JSON schema has no type {kind!r}")
        return _SCALARS[kind]

    def _string(self, schema: Mapping[str, Any]) -> str:
        if "pattern" in schema:
            return f'("{schema["pattern"].removeprefix("^").removesuffix("$")}")'
        if "minLength" in schema or "maxLength" in schema:
            low, high = schema.get("minLength", 0), schema.get("maxLength", "")
            return f'"{_CHAR}{{{low},{high}}}"'
        name = schema.get("format")
        if name is not None and name not in _FORMATS:
            raise UsageError(f"the format {name!r} has no pattern; known: {', '.join(_FORMATS)}")
        return _SCALARS["string"] if name is None else _FORMATS[name]

    def _array(self, schema: Mapping[str, Any]) -> str:
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        if high == 0:
            return rf"\[{self._space}\]"
        item = self.of(schema["items"]) if "items" in schema else self._any(ANY_DEPTH - 1)
        return self._list(item, low, high)

    def _list(self, item: str, low: int = 0, high: int | None = None) -> str:
        more = f"{{{max(low - 1, 0)},{'' if high is None else high - 1}}}"
        items = f"(({item})(,{self._space}({item})){more}){'' if low else '?'}"
        return rf"\[{self._space}{items}{self._space}\]"

    def _map(self, value: str) -> str:
        pair = f"{_SCALARS['string']}{self._space}:{self._space}{value}"
        pairs = f"({pair}({self._space},{self._space}{pair}){{0,}})?"
        return rf"\{{{self._space}{pairs}{self._space}\}}"

    def _any(self, depth: int) -> str:
        """Any value, with lists and objects to some depth."""
        kinds = [_SCALARS[kind] for kind in ("string", "number", "boolean", "null")]
        if depth > 0:
            inner = self._any(depth - 1)
            kinds += [self._list(inner), self._map(inner)]
        return f"({'|'.join(kinds)})"

    _KEYWORDS: ClassVar = {
        "properties": _properties,
        "allOf": _all_of,
        "anyOf": _any_of,
        "oneOf": _one_of,
        "prefixItems": _prefix_items,
        "enum": _enum,
        "const": _const,
        "$ref": _reference,
        "type": _type,
    }
