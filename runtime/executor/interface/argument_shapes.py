"""Checks that an argument is the data that its annotation says.

A compiled program holds the annotation as a JSON schema of a few keywords, in a guard of kind
"argument", so that a file without source checks it too. Types are exact: True is no int, a
defaultdict no dict. An int is accepted for a float, as in annotations. The schema also has the
argument's default, if that is a list or dict.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sgc.ir.graph import Graph
from sgc.runtime.executor.interface.failures import class_name

KIND = "argument"  # of a guard: its value is the schema
MAX_NESTING = 100  # as in `guards.py`
_MAX_SHOWN = 60
_DEFAULT = "default"
_NAMES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (float, int),
    "boolean": (bool,),
    "null": (type(None),),
}
_ANY = tuple(dict.fromkeys(of for types in _NAMES.values() for of in types))
_OBJECT = "instance"  # of objects of a class, which a program takes as the dicts of their fields
_TUPLE = "tuple"  # no type of JSON: a program's data may hold some, if its schema says so


@dataclass(frozen=True, slots=True)
class Misfit:
    """A part of an argument that its schema refuses. at: its place, such as `[1]['content']`."""

    at: str
    expected: str
    found: str


def schemas_of(graph: Graph) -> dict[str, Any]:
    """The schemas of a program's arguments, by name; some have none."""
    return {g.name: parsed(g.value) for g in graph.guards if g.kind == KIND}


@lru_cache(maxsize=256)
def parsed(schema: str) -> Any:
    """Parses a guard's schema; the result is shared and must not be changed."""
    return json.loads(schema)


def with_default(schema: str, value: Any) -> str:
    """A schema that has an argument's default."""
    return json.dumps({**parsed(schema), _DEFAULT: value})


def default_of(schema: Any) -> Any:
    """A new copy of the default in a schema; one that does not fit is not copied, as a run
    refuses it."""
    value = _tuples(schema[_DEFAULT], schema)
    return deepcopy(value) if misfit(value, schema) is None else value


def has_default(schema: Any) -> bool:
    return _DEFAULT in schema


def problem(name: str, value: Any, schema: Any) -> str:
    """The message for a user about a wrong argument; empty if it is right."""
    found = misfit(value, schema)
    if found is None:
        return ""
    whole = f"argument {name!r} must be {shown(schema)}"
    if not found.at and found.expected.startswith(shown(schema)):
        return f"argument {name!r} must be {found.expected}, found {found.found}"
    return f"{whole}: {name}{found.at} must be {found.expected}, found {found.found}"


def with_tuples(graph: Graph, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments out of JSON, with tuples where the program takes some: JSON has only lists."""
    schemas = schemas_of(graph)
    return {name: _tuples(value, schemas.get(name, {})) for name, value in arguments.items()}


def lowered(value: Any, schema: Any, takes_data: bool = True) -> Any:
    """An argument with dicts of fields for the objects in it, if they are what the schema says.

    takes_data: such a dict may be given in place of an object; else a dict is replaced by a value
    that fits no schema.
    """
    of = schema.get("type")
    if of == _OBJECT:
        return _fields(value, schema, takes_data)
    if of == "array" and type(value) is list and "items" in schema:
        return [lowered(item, schema["items"], takes_data) for item in value]
    if of == "object" and type(value) is dict and "additionalProperties" in schema:
        others = schema["additionalProperties"]
        return {key: lowered(item, others, takes_data) for key, item in value.items()}
    return value


def made(value: Any, schema: Any, classes: Mapping[str, type]) -> Any:
    """The opposite of `lowered`: objects for the dicts of their fields. classes: by their names in
    the schema. Raises whatever a class raises."""
    if arms := schema.get("anyOf"):
        held = [a for a in arms if a.get("type") == _OBJECT and type(value) is dict]
        fitting = [a for a in held if value.keys() <= a["properties"].keys()] or held
        return made(value, fitting[0], classes) if fitting else value
    of = schema.get("type")
    if of == _OBJECT and type(value) is dict:
        parts = schema["properties"]
        fields = {name: made(each, parts.get(name, {}), classes) for name, each in value.items()}
        return classes[schema["class"]](**fields)
    if of == "array" and type(value) is list:
        return [made(item, schema.get("items", {}), classes) for item in value]
    if of == "object" and type(value) is dict:
        told, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        return {key: made(item, told.get(key, others), classes) for key, item in value.items()}
    return _tuples(value, schema)


def _fields(value: Any, schema: Any, takes_data: bool) -> Any:
    """The fields of an object, in the order of its class."""
    parts = schema["properties"]
    is_more = getattr(value, "__pydantic_extra__", None) or getattr(
        value, "__pydantic_private__", None
    )
    is_object = class_name(type(value)) == schema["class"] and not is_more
    held = value if type(value) is dict and takes_data else getattr(value, "__dict__", None)
    if held is None or held.keys() != parts.keys() or not (held is value or is_object):
        return value if takes_data else None
    return {name: lowered(held[name], each, takes_data) for name, each in parts.items()}


def _tuples(value: Any, schema: Any) -> Any:
    of = schema.get("type")
    if of == _TUPLE and type(value) is list and len(value) == len(schema["prefixItems"]):
        return tuple(map(_tuples, value, schema["prefixItems"]))
    if of == "array" and type(value) is list:
        return [_tuples(item, schema.get("items", {})) for item in value]
    if of in ("object", _OBJECT) and type(value) is dict:
        told, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        return {key: _tuples(item, told.get(key, others)) for key, item in value.items()}
    return value


def misfit(value: Any, schema: Any, at: str = "", depth: int = 0) -> Misfit | None:
    """The first part of a value that its schema refuses; None if there is none."""
    if depth > MAX_NESTING:
        return Misfit(at, f"nested at most {MAX_NESTING} levels deep", "more")
    arms = schema.get("anyOf")
    if arms is not None:
        found = [misfit(value, arm, at, depth + 1) for arm in arms]
        fits = any(each is None for each in found)
        deeper = next((each for each in found if each is not None and each.at != at), None)
        return None if fits else deeper or _misfit(at, schema, value)
    if not _is_of(value, schema):
        return _misfit(at, schema, value)
    if type(value) is dict:
        return _in_dict(value, schema, at, depth)
    if type(value) is tuple:
        told = schema["prefixItems"]
        if len(value) != len(told):
            return _misfit(at, schema, value)
        pairs = enumerate(zip(value, told, strict=True))
        return _first(((item, of, f"{at}[{n}]") for n, (item, of) in pairs), depth)
    if type(value) is list:
        items = schema.get("items", {})
        parts = ((item, items, f"{at}[{n}]") for n, item in enumerate(value))
        return _first(parts, depth)
    return None


def _is_of(value: Any, schema: Any) -> bool:
    of = schema.get("type")
    if of == _TUPLE:
        return type(value) is tuple
    if of == _OBJECT:
        return type(value) is dict and value.keys() == schema["properties"].keys()
    if type(value) not in (_ANY if of is None else _NAMES[of]):
        return False
    return "enum" not in schema or value in schema["enum"]


def _in_dict(value: dict[Any, Any], schema: Any, at: str, depth: int) -> Misfit | None:
    key = next((key for key in value if type(key) is not str), None)
    if key is not None:
        return Misfit(at, "a dict whose keys are texts", f"the key {_cut(repr(key))}")
    missing = next((name for name in schema.get("required", ()) if name not in value), None)
    if missing is not None:
        return Misfit(at, f"a dict with the key {missing!r}", _described(value))
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    parts = ((v, properties.get(k, others), f"{at}[{_cut(repr(k))}]") for k, v in value.items())
    return _first(parts, depth)


def _first(parts: Iterable[tuple[Any, Any, str]], depth: int) -> Misfit | None:
    found = (misfit(value, schema, at, depth + 1) for value, schema, at in parts)
    return next((each for each in found if each is not None), None)


def _misfit(at: str, schema: Any, value: Any) -> Misfit:
    expected = shown(schema)
    if schema.get("type") == _OBJECT and type(value) is dict:
        expected += f", as an object of all its fields, {', '.join(schema['properties'])}"
    return Misfit(at, expected, _described(value))


def _described(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} {_cut(repr(value))}"


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def shown(schema: Any) -> str:
    """A schema, shown as an annotation."""
    if "enum" in schema:
        return " or ".join(map(repr, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(map(shown, schema["anyOf"]))
    of = schema.get("type")
    if of == "array":
        return f"list[{shown(schema['items'])}]" if schema.get("items") else "list"
    if of == "object":
        return _shown_dict(schema)
    if of == _OBJECT:
        return str(schema["class"].rpartition(":")[2])
    if of == _TUPLE:
        return f"tuple[{', '.join(map(shown, schema['prefixItems']))}]"
    return {None: "JSON data", "null": "None"}.get(of) or _NAMES[of][0].__name__


def _shown_dict(schema: Any) -> str:
    if schema.get("properties"):
        return _cut(
            "{" + ", ".join(f"{k}: {shown(v)}" for k, v in schema["properties"].items()) + "}"
        )
    others = schema.get("additionalProperties")
    return f"dict[str, {shown(others)}]" if others else "dict"
