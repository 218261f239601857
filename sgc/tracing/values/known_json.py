"""Values out of JSON that a schema describes: their types are known, so few of them decide.

Only of objects and lists: no JSON text of one begins with another, so that a text which was cut
cannot be read at all. A whole number that the schema takes as `1.0` fails its run.
"""

from __future__ import annotations

import json
from typing import Any

from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.tracing.values.abstract_json import NAMES, AbstractJson, seen
from sgc.tracing.values.computing import attempted, computed, note_known, whole
from sgc.tracing.values.recorder import Recorder
from sgc.tracing.values.text_types import Known

_SCALARS = {"string": types.TEXT, "integer": types.INT, "boolean": types.BOOL}
_PYTHON: dict[str, type] = {"object": dict, "array": list}


def known_json(value: Any, schema_text: str) -> Any:
    """A value that was just read, with what its schema says of it."""
    schema = json.loads(schema_text)
    found = resolved(schema, schema)
    if found.get("type") not in _PYTHON or not isinstance(value, AbstractJson):
        return seen(value)
    return KnownJson(value.symbol, value.session, found, schema)


class KnownJson(AbstractJson):
    """A dict or a list that a schema describes. root: where its references lead from."""

    __slots__ = ("_root", "_schema")

    def __init__(self, symbol: Symbol, session: Recorder, schema: Any, root: Any) -> None:
        super().__init__(symbol, session)
        self._schema, self._root = schema, root

    @property
    def _is_dict(self) -> bool:
        return bool(self._schema["type"] == "object")

    def is_a(self, *of: type) -> bool:
        return issubclass(_PYTHON[self._schema["type"]], of)

    def __getitem__(self, key: Any) -> Any:
        if self._is_dict and self._requires(key):
            return self._part(key, self._schema["properties"][key], computed)
        if not self._is_dict and not isinstance(key, (str, slice)):
            return self._part(key, self._schema.get("items"), _indexed)
        return super().__getitem__(key)

    def sure_item(self, index: Any) -> Any:
        return self._part(whole(index), self._schema.get("items"), computed)

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if self._is_dict and self._requires(key) else super().get(key, default)

    def length(self) -> Any:
        return computed(self.session, "len", self)

    def __contains__(self, item: Any) -> bool:
        return (self._is_dict and self._requires(item)) or super().__contains__(item)

    def __bool__(self) -> bool:
        return bool(self._is_dict and self._schema.get("required")) or super().__bool__()

    def _requires(self, key: Any) -> bool:
        is_plain = type(key) is str
        required, properties = self._schema.get("required", ()), self._schema.get("properties", {})
        return is_plain and key in required and key in properties

    def _part(self, key: Any, schema: Any, record: Any) -> Any:
        """A part that is sure to be there, as the type that its schema gives."""
        found = resolved(schema, self._root)
        options = _options(found)
        of = "string" if options else found.get("type")
        if of in _SCALARS and of != "integer":
            value = record(self.session, "item", self, key, type_=_SCALARS[of])
            if options:
                note_known(self.session, value, Known(options=options))
            return value
        value = record(self.session, "item", self, key, type_=types.JSON)
        if of == "integer":
            return computed(self.session, "as", value, NAMES[int], "real", type_=types.INT)
        if of in _PYTHON:
            return KnownJson(value.symbol, self.session, found, self._root)
        return value if of == "number" else seen(value)


def _indexed(session: Recorder, fn: str, *args: Any, type_: types.Type) -> Any:
    return attempted(session, fn, *args, type_=type_, errors=("IndexError",))


def _options(schema: Any) -> tuple[str, ...] | None:
    given = [schema["const"]] if "const" in schema else schema.get("enum", ())
    is_of_text = bool(given) and all(isinstance(option, str) for option in given)
    return tuple(given) if is_of_text else None


def resolved(schema: Any, root: Any) -> dict[str, Any]:
    """A schema with its reference followed; an empty one for what is not understood."""
    for _ in range(16):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if reference is None:
            is_open = any(word in schema for word in ("anyOf", "oneOf", "allOf", "not", "if"))
            return {} if is_open and "type" not in schema else schema
        schema = _followed(str(reference), root)
    return {}


def _followed(reference: str, root: Any) -> Any:
    found = root
    for word in reference.removeprefix("#/").split("/"):
        found = found.get(word) if isinstance(found, dict) else None
    return found
