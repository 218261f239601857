"""Values out of JSON with a schema: their types are known, so that they cause few decisions.

For generated texts, only schemas of objects and lists are used: no JSON object or list is the
beginning of another, so a text that was cut is not valid JSON. If a reply has `1.0` for an integer,
as the schema allows, the run fails. Arguments are checked before the run, by Python's types, so
everything in an argument's schema is known.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from sgc.core.shapes import is_told
from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.tracing.kinds.row_types import told_type
from sgc.tracing.kinds.text_types import Known
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.abstract_loops import Items
from sgc.tracing.values.computing import attempted, computed, is_untyped, note_known, whole
from sgc.tracing.values.json.abstract_json import NAMES, AbstractJson, refuse_patterns, seen
from sgc.tracing.values.recorder import Recorder

_SCALARS = {"string": types.TEXT, "integer": types.INT, "boolean": types.BOOL}
_PYTHON: dict[str, type] = {"object": dict, "array": list}
_NAMES = {"string": "str", "integer": "int", "boolean": "bool", "object": "dict", "array": "list"}
_ATTRIBUTE = "…"  # the attribute that an error would name; none is raised: the type is certain


@dataclass(frozen=True, slots=True)
class _Texts:
    """A schema, and the root of its references, as texts. The texts of one schema are equal, so
    that its values compare as equal where paths merge. is_checked: whether it is an argument's.
    """

    schema: str
    root: str
    is_checked: bool

    def view(self, value: AbstractJson) -> KnownJson:
        return KnownJson(value.symbol, value.session, self)

    def item(self, item: Any) -> Any:
        shape = _shape(self)
        return _checked(item, shape.part(shape.schema.get("items", {})))


class _Shape(NamedTuple):
    """A schema, and the root of its references. is_checked: whether it is an argument's."""

    schema: Any
    root: Any
    is_checked: bool

    def part(self, schema: Any) -> _Shape:
        return self._replace(schema=schema if self.is_checked else resolved(schema, self.root))

    @property
    def texts(self) -> _Texts:
        root = "" if self.is_checked else _text(self.root)
        return _Texts(_text(self.schema), root, self.is_checked)

    @property
    def options(self) -> tuple[str, ...] | None:
        given = [self.schema["const"]] if "const" in self.schema else self.schema.get("enum", ())
        is_of_text = bool(given) and all(isinstance(option, str) for option in given)
        return tuple(given) if is_of_text else None

    @property
    def or_none(self) -> Any:
        """The schema `X`, if this schema is `X` or None."""
        arms = [arm for arm in self.schema.get("anyOf", ()) if arm.get("type") != "null"]
        is_whole = len(arms) == 1 and len(self.schema["anyOf"]) == 2
        return arms[0] if is_whole and arms[0].get("type") in _NAMES else None


def _text(schema: Any) -> str:
    return json.dumps(schema)


@lru_cache(maxsize=1024)
def _shape(texts: _Texts) -> _Shape:
    return _Shape(json.loads(texts.schema), json.loads(texts.root or "{}"), texts.is_checked)


def known_json(value: Any, schema_text: str) -> Any:
    """A value that was just parsed, with its schema known."""
    schema = json.loads(schema_text)
    found = resolved(schema, schema)
    if found.get("type") not in _PYTHON or not isinstance(value, AbstractJson):
        return seen(value)
    return _noted(value, _Shape(found, schema, False))


def argument(value: Any, schema_text: str) -> Any:
    """An argument with its schema known, which is checked before the run."""
    return _checked(value, _Shape(json.loads(schema_text), {}, True))


def known_dict(value: AbstractJson, schema: Any) -> Any:
    """A dict made by the program, whose values have the types of the schema."""
    return _noted(value, _Shape(schema, {}, True))


def _noted(value: Any, shape: _Shape) -> Any:
    refuse_patterns()
    note_known(value.session, value, Known(shape=shape.texts))
    return value


def _checked(value: Any, shape: _Shape) -> Any:
    """A value that is certain to fit its schema, with the schema known."""
    if isinstance(value, AbstractList) and is_told(shape.schema):
        is_one = shape.schema.get("type") in _PYTHON
        return _noted(value, shape) if is_one else _one_of(value, shape)
    if shape.options:
        note_known(value.session, value, Known(options=shape.options))
    return value


def _one_of(value: Any, shape: _Shape) -> Any:
    """A value of one of several types; whether it is None is decided."""
    inner = shape.or_none
    if inner is None:
        return seen(value)
    session = value.session
    session.has_untyped = True
    if computed(session, "is_a", value, "NoneType"):
        return None
    name = _NAMES[inner["type"]]
    typed = computed(session, "as", value, name, _ATTRIBUTE, type_=told_type(inner))
    return _checked(typed, shape.part(inner))


class KnownJson(AbstractJson):
    """The methods of a dict or list by its schema. The program has an `AbstractJson`, for whose
    symbol the session knows the schema.
    """

    __slots__ = ("_texts",)

    def __init__(self, symbol: Symbol, session: Recorder, texts: _Texts) -> None:
        super().__init__(symbol, session)
        self._texts = texts

    def told(self) -> None:
        """None: this is already the value as its schema describes it."""

    @property
    def _shape(self) -> _Shape:
        return _shape(self._texts)

    @property
    def _schema(self) -> Any:
        return self._shape.schema

    @property
    def _is_dict(self) -> bool:
        return bool(self._schema["type"] == "object")

    def is_a(self, *of: type) -> bool:
        return issubclass(_PYTHON[self._schema["type"]], of)

    def __getitem__(self, key: Any) -> Any:
        if self._is_dict and self._requires(key):
            return self._part(key, self._schema["properties"][key], computed)
        if is_untyped(key):
            return super().__getitem__(key)
        if not self._is_dict and not isinstance(key, (str, slice)):
            return self._part(key, self._schema.get("items"), _indexed)
        if self._shape.is_checked and isinstance(key, str):
            return self._part(key, self._value_of(key), _keyed)
        return super().__getitem__(key)

    def sure_item(self, index: Any) -> Any:
        return self._part(whole(index), self._schema.get("items"), computed)

    def get(self, key: Any, default: Any = None) -> Any:
        if self._is_dict and self._requires(key):
            return self[key]
        if not self._shape.is_checked or not isinstance(key, str):
            return super().get(key, default)
        schema = self._value_of(key)
        if told_type(schema) == types.TEXT and isinstance(default, str):
            return computed(self.session, "get", self, key, default, type_=types.TEXT)
        return self._part(key, schema, computed) if key in self else default

    def keys(self) -> Any:
        if not self._shape.is_checked:
            return super().keys()
        keys = computed(self.session, "keys", self, type_=types.list_of(types.TEXT))
        return self.session.viewed(keys, self, "keys")

    def items(self) -> Any:
        if not self._shape.is_checked:
            return super().items()
        return _Pairs(self.keys(), self)

    def values(self) -> Any:
        if not self._shape.is_checked:
            return super().values()
        properties, others = (self._schema.get(w) for w in ("properties", "additionalProperties"))
        inner = {} if properties else others or {}
        schema = {"type": "array", "items": inner}
        found = computed(self.session, "values", self, type_=told_type(schema))
        return self.session.viewed(_checked(found, self._shape.part(schema)), self, "values")

    def length(self) -> Any:
        return computed(self.session, "len", self)

    def __contains__(self, item: Any) -> bool:
        if self._is_dict and self._requires(item):
            return True
        if self._is_dict and self._shape.is_checked and isinstance(item, str):
            return bool(computed(self.session, "has", self, item))
        return super().__contains__(item)

    def __bool__(self) -> bool:
        return bool(self._is_dict and self._schema.get("required")) or super().__bool__()

    def _requires(self, key: Any) -> bool:
        is_plain = type(key) is str
        required, properties = self._schema.get("required", ()), self._schema.get("properties", {})
        return is_plain and key in required and key in properties

    def _value_of(self, key: Any) -> Any:
        """The schema of a key's value; for an abstract key, the schema of all values, if equal."""
        properties, others = (
            self._schema.get("properties"),
            self._schema.get("additionalProperties"),
        )
        if not properties:
            return others or {}
        return properties.get(key, {}) if type(key) is str else {}

    def _part(self, key: Any, schema: Any, record: Any) -> Any:
        """A part, read by `record`, with the type that its schema gives."""
        shape = self._shape.part(schema)
        if shape.is_checked:
            return self._checked_part(key, shape, record)
        found, options = shape.schema, shape.options
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
            return _noted(value, shape)
        return value if of == "number" else seen(value)

    def _checked_part(self, key: Any, shape: _Shape, record: Any) -> Any:
        return _checked(
            record(self.session, "item", self, key, type_=told_type(shape.schema)), shape
        )


class _Pairs(Items):
    """`items()` of a dict that is an argument or a part of an argument."""

    made_by = "items"

    def __init__(self, keys: AbstractList, whole: KnownJson) -> None:
        super().__init__(keys)
        self._whole = whole

    def __next__(self) -> Any:
        key = super().__next__()
        return key, self._whole._part(key, self._whole._value_of(key), computed)


def _indexed(session: Recorder, fn: str, *args: Any, type_: types.Type) -> Any:
    return attempted(session, fn, *args, type_=type_, errors=("IndexError",))


def _keyed(session: Recorder, fn: str, *args: Any, type_: types.Type) -> Any:
    return attempted(session, fn, *args, type_=type_, errors=("KeyError",))


def resolved(schema: Any, root: Any) -> dict[str, Any]:
    """A schema with its reference followed; an empty one if it is not supported."""
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
