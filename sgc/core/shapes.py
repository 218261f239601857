"""The JSON schema of data, from an annotation or from a value, and its type in a program.

The schemas use only the keywords that `argument_shapes.py` checks. An annotation that JSON cannot
express (a set, most classes of the user's, keys that are not texts) has no schema: the value of
such an argument must be known when compiling. Objects of dataclasses have one: they are the
data of their fields, under a type of our own.
"""

from __future__ import annotations

import dataclasses
import sys
import types as python_types
import typing
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from sgc.ir import types
from sgc.ir.types import Type
from sgc.runtime.executor.interface.failures import class_name

Schema = dict[str, Any]

MAX_DEPTH = 8  # of a schema; data nested deeper is of any type
MAX_KEYS = 64  # of dicts whose schema lists their keys

OBJECT = "instance"  # the type of objects of a class

_SCALARS: Mapping[Any, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null",
}  # fmt: skip
_TYPES: Mapping[str | None, Type] = {
    "string": types.TEXT, "integer": types.INT, "number": types.FLOAT, "boolean": types.BOOL,
}  # fmt: skip
_DICTS = (dict, Mapping, MutableMapping)
_LISTS = (list, Sequence, MutableSequence)
_UNIONS = (typing.Union, python_types.UnionType)
_PART_OF_TYPED_DICT = (typing.Required, typing.NotRequired)


def type_of(schema: Schema) -> Type:
    """The type in a program of data with this schema."""
    if "enum" in schema:
        return types.choice_of(tuple(schema["enum"]))
    if schema.get("type") == "array":
        item = type_of(schema.get("items", {}))
        # Only the schema restricts the items to some texts: all lists of texts have one type.
        return types.list_of(types.TEXT if item.kind is types.Kind.CHOICE else item)
    return _TYPES.get(schema.get("type"), types.JSON)


def is_told(schema: Schema) -> bool:
    """Whether a schema says more about data than its type does."""
    if schema.get("type") == "array":
        return is_told(schema.get("items", {}))
    return type_of(schema).kind in (types.Kind.JSON, types.Kind.CHOICE)


def holds_tuples(schema: Schema) -> bool:
    """Whether data of this schema may hold a tuple, which JSON has not."""
    parts = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    parts += [schema[word] for word in ("items", "additionalProperties") if word in schema]
    return schema.get("type") == "tuple" or any(map(holds_tuples, parts))


def holds_objects(schema: Schema) -> bool:
    """Whether data of this schema is, or holds, objects of the user's classes."""
    parts = [schema[word] for word in ("items", "additionalProperties") if word in schema]
    return schema.get("type") == OBJECT or any(map(holds_objects, parts))


def as_data(schema: Schema) -> Schema:
    """The schema of the data that stands for objects: dicts of their fields."""
    found = dict(schema)
    if schema.get("type") == OBJECT:
        parts = schema["properties"]
        found = {"type": "object", "required": [*parts], "properties": parts}
    if "properties" in found:
        found["properties"] = {key: as_data(each) for key, each in found["properties"].items()}
    for word in ("items", "additionalProperties"):
        if word in found:
            found[word] = as_data(found[word])
    return found


# -- annotations --------------------------------------------------------------------------------


def of_annotation(annotation: Any, depth: int = 0) -> Schema | None:
    """The schema of an annotation; None if JSON cannot express it."""
    if depth > MAX_DEPTH or annotation in (Any, object):
        return {}
    if typing.get_origin(annotation) is tuple:
        return _of_tuple(typing.get_args(annotation)) if depth else None
    if isinstance(annotation, type | python_types.NoneType) and annotation in _SCALARS:
        return {"type": _SCALARS[annotation]}
    if annotation is None:
        return {"type": "null"}
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in _PART_OF_TYPED_DICT or origin is typing.Annotated:
        return of_annotation(args[0], depth)
    if typing.is_typeddict(annotation):
        return _of_typed_dict(annotation, depth)
    if isinstance(annotation, type) and (names := _fields(annotation)) is not None:
        return _of_class(annotation, names, depth)
    read = next((read for of, read in _READERS if (origin or annotation) in of), None)
    return read(args, depth) if read is not None else None


def _of_dict(args: tuple[Any, ...], depth: int) -> Schema | None:
    key, value = args or (str, Any)
    inner = of_annotation(value, depth + 1)
    if key is not str or inner is None:
        return None
    return {"type": "object"} | ({"additionalProperties": inner} if inner else {})


def _of_list(args: tuple[Any, ...], depth: int) -> Schema | None:
    inner = of_annotation(args[0], depth + 1) if args else {}
    return None if inner is None else {"type": "array"} | ({"items": inner} if inner else {})


def _of_tuple(args: tuple[Any, ...]) -> Schema | None:
    """The schema of a tuple of texts, numbers and bools, as an item or value of data; None for any
    other tuple. JSON Schema has no keyword for tuples."""
    parts = [
        of_annotation(each, 1) if each in _SCALARS or typing.get_origin(each) is tuple else None
        for each in args
    ]
    is_told = bool(parts) and None not in parts and {"type": "null"} not in parts
    return {"type": "tuple", "prefixItems": parts} if is_told else None


def _of_literal(args: tuple[Any, ...], depth: int) -> Schema | None:
    return {"type": "string", "enum": [*args]} if all(type(each) is str for each in args) else None


def _of_union(args: tuple[Any, ...], depth: int) -> Schema | None:
    arms = [of_annotation(each, depth + 1) for each in args]
    told = [each for each in arms if each is not None]
    if len(told) < len(arms) or any(holds_tuples(each) or holds_objects(each) for each in told):
        return None
    return {} if {} in arms else {"anyOf": arms}


def _of_typed_dict(annotation: Any, depth: int) -> Schema | None:
    try:
        hints = typing.get_type_hints(annotation, include_extras=True)
    except (NameError, TypeError):
        return None
    parts = {name: of_annotation(hint, depth + 1) for name, hint in hints.items()}
    if any(each is None or holds_objects(each) for each in parts.values()):
        return None
    required = [name for name, hint in hints.items() if _is_required(annotation, name, hint)]
    return {"type": "object", "properties": parts, "required": required}


def is_model(kind: Any) -> bool:
    """Whether a class is a model of pydantic's; does not import pydantic."""
    base: Any = getattr(sys.modules.get("pydantic"), "BaseModel", None)
    is_known = base is not None and hasattr(base, "model_validate_json")  # not of version 1
    return is_known and isinstance(kind, type) and issubclass(kind, base)


def _fields(kind: Any) -> list[str] | None:
    """The names of the fields of a dataclass or model; None for other classes, and for classes
    whose objects have more than their fields."""
    if is_model(kind):
        return list(kind.model_fields)
    if not dataclasses.is_dataclass(kind) or kind.__eq__ is object.__eq__:
        return None  # compared by identity, which no copy has
    above: tuple[type, ...] = kind.__mro__  # type: ignore[union-attr]
    if any("__slots__" in vars(each) for each in above[:-1]):
        return None
    return [each.name for each in dataclasses.fields(kind)]


def _of_class(annotation: Any, names: list[str], depth: int) -> Schema | None:
    """The schema of the objects of a class, which have its fields and nothing else."""
    try:
        hints = typing.get_type_hints(annotation)
    except (NameError, TypeError):
        return None
    parts = {name: of_annotation(hints[name], depth + 1) for name in names}
    if None in parts.values():
        return None
    found = {"type": OBJECT, "class": class_name(annotation), "properties": parts}
    is_frozen = not is_model(annotation) and annotation.__dataclass_params__.frozen
    return found | ({"form": "frozen"} if is_frozen else {})


def classes_in(annotation: Any, depth: int = 0) -> Iterator[type]:
    """The classes whose objects data of an annotation may be or hold."""
    if depth > MAX_DEPTH:
        return
    if isinstance(annotation, type) and _fields(annotation) is not None:
        yield annotation
        for each in typing.get_type_hints(annotation).values():
            yield from classes_in(each, depth + 1)
    for each in typing.get_args(annotation):
        yield from classes_in(each, depth + 1)


def _is_required(annotation: Any, name: str, hint: Any) -> bool:
    """Whether a key is required; a class whose annotations are texts does not know this itself."""
    if typing.get_origin(hint) in _PART_OF_TYPED_DICT:
        return typing.get_origin(hint) is typing.Required
    return name in annotation.__required_keys__


_READERS: tuple[tuple[tuple[Any, ...], Callable[[tuple[Any, ...], int], Schema | None]], ...] = (
    (_DICTS, _of_dict),
    (_LISTS, _of_list),
    ((typing.Literal,), _of_literal),
    (_UNIONS, _of_union),
)


# -- values -------------------------------------------------------------------------------------


def of_value(value: Any, depth: int = 0) -> Schema | None:
    """The schema of a value and of data like it; None for a value that is not JSON data."""
    of = _SCALARS.get(type(value))
    if of is not None:
        return {"type": of}
    if depth > MAX_DEPTH:
        return {}
    if type(value) is list:
        inner = _of_all(value, depth)
        return None if inner is None else {"type": "array"} | ({"items": inner} if inner else {})
    if type(value) is dict and all(type(key) is str for key in value):
        return _of_value_dict(value, depth)
    return None


def _of_value_dict(value: dict[str, Any], depth: int) -> Schema | None:
    """The schema of a dict: without its keys if all values have one schema, else with them."""
    parts = {key: of_value(each, depth + 1) for key, each in value.items()}
    if None in parts.values():
        return None
    first = next(iter(parts.values()), {})
    if first and all(each == first for each in parts.values()):
        return {"type": "object", "additionalProperties": first}
    if not first or len(parts) > MAX_KEYS:
        return {"type": "object"}
    return {"type": "object", "properties": dict(sorted(parts.items())), "required": sorted(parts)}


def _of_all(values: list[Any], depth: int) -> Schema | None:
    """The schema of all items; {} if they differ, None if one is not JSON data."""
    first: Schema | None = {}
    for n, value in enumerate(values):
        found = of_value(value, depth + 1)
        if found is None:
            return None
        if n == 0:
            first = found
        elif found != first:
            first = {}
    return first
