"""Pydantic's models as code: their fields, configuration and validators, provided that the class
that a run makes from these has the same schema.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from types import FunctionType
from typing import Any, Literal

from sgc.core.shapes import is_model
from sgc.errors import ProgramError
from sgc.runtime.executor.code.classes.models import (
    CONFIG,
    DESCRIBED,
    FACTORIES,
    FIELD,
    MODES,
    namespace,
)
from sgc.tracing.kinds.members import is_member

_SCALARS = {
    str: "str", int: "int", float: "float", bool: "bool", type(None): "None", None: "None",
    Any: "any", list: "list", dict: "dict", date: "date", datetime: "datetime", time: "time",
    timedelta: "timedelta", Decimal: "Decimal",
}  # fmt: skip
_CONTAINERS = {list: "list", dict: "dict", tuple: "tuple"}
_UNIONS = (typing.Union, types.UnionType)
_REFERENCE = re.compile(r"[\w.<>]*?(\w+):\d+")
MISSING = object()
__all__ = ["Described", "NoModel", "described", "is_model", "node_of"]


class NoModel(Exception):
    """A model cannot be code."""


def base_model() -> Any:
    return sys.modules["pydantic"].BaseModel


class Described:
    """The description of a model in code. uses: the classes that the description names; validators:
    the model's methods that pydantic calls, by name."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.uses: dict[str, Any] = {}
        own = vars(kind).get("__annotations__", {})
        found = {n: each for n, each in kind.model_fields.items() if n in own}
        self.validators = dict(_validators(kind))
        self.value: dict[str, Any] = {
            "fields": {name: self._field(name, each) for name, each in found.items()},
            "config": _config(kind),
            "validators": self.validators,
        }
        (base,) = kind.__bases__
        self.base = "BaseModel" if base is base_model() else base.__name__
        self._use(self.base, base)
        _refuse_others(kind)
        self._compare(base)

    @property
    def text(self) -> str:
        return _written(self.value)

    def _use(self, name: str, kind: Any) -> None:
        if self.uses.setdefault(name, kind) is not kind:
            raise NoModel(f"{self.kind.__name__} has fields of two classes {name}")

    def _field(self, name: str, field: Any) -> dict[str, Any]:
        given = _options(field)
        found: dict[str, Any] = {"type": self._type(field.annotation)}
        for key, value in given.items():
            if key == "default_factory":
                names = [each for each, of in FACTORIES.items() if of is value]
                if not names:
                    raise NoModel(f"the default_factory of {self.kind.__name__}.{name} is no type")
                value = names[0]
            elif key == "default":
                if value is ...:
                    continue
                for member in _members_in(self.kind, name, value):
                    self._use(type(member).__name__, type(member))
            elif key not in FIELD or not isinstance(value, (str, int, float, bool, type(None))):
                raise NoModel(f"{key}= of {self.kind.__name__}.{name} is no data")
            found[key] = value
        return found

    def _type(self, annotation: Any) -> Any:
        is_plain = isinstance(annotation, (type, types.NoneType)) or annotation is Any
        if is_plain and annotation in _SCALARS:
            return _SCALARS[annotation]
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Literal:
            return ("literal", *args)
        if origin in _UNIONS:
            return ("union", *map(self._type, args))
        if origin in _CONTAINERS and ... not in args:
            return (_CONTAINERS[origin], *map(self._type, args))
        is_class = origin is None and isinstance(annotation, type)
        if is_class and (is_model(annotation) or issubclass(annotation, enum.Enum)):
            self._use(annotation.__name__, annotation)
            return annotation
        if origin is typing.Annotated:
            told: dict[str, Any] = {}
            for each in args[1:]:
                told |= _options(each) if hasattr(each, "_attributes_set") else _parts(each)
            return ("annotated", self._type(args[0]), told)
        raise NoModel(f"{self.kind.__name__} has a field of type {annotation!r}")

    def _compare(self, base: Any) -> None:
        """Refuses a model that its description does not describe completely."""
        stand_ins = dict.fromkeys(self.validators, _stand_in)
        kinds = tuple(self.uses.values())
        try:
            space = namespace(self.value, stand_ins, lambda kind: kind in kinds)
            made: Any = types.new_class(
                self.kind.__name__, (base,), {}, lambda to: to.update(space)
            )
            is_same = _plain(made.__pydantic_core_schema__) == _plain(
                self.kind.__pydantic_core_schema__
            )
        except (ProgramError, TypeError, ValueError, KeyError) as error:
            raise NoModel(f"{self.kind.__name__} is no data: {error}") from None
        if not is_same:
            raise NoModel(f"{self.kind.__name__} has more than fields, validators and methods")


def _options(field: Any) -> dict[str, Any]:
    """The arguments that were given to `Field`."""
    found = {k: v for k, v in field._attributes_set.items() if k != "annotation"}
    for each in field.metadata:
        found |= _parts(each)
    return found


def _parts(constraint: Any) -> dict[str, Any]:
    """The names and values of a constraint of pydantic's or of annotated_types."""
    if dataclasses.is_dataclass(constraint) and not isinstance(constraint, type):
        names = [each.name for each in dataclasses.fields(constraint)]
        return {name: getattr(constraint, name) for name in names}
    return dict(getattr(constraint, "__dict__", {}))


@lru_cache(maxsize=256)
def described(kind: Any) -> Described:
    """The description of a model in code; raises NoModel."""
    return Described(kind)


def _stand_in(*args: Any) -> Any:
    return args[-1]


def _members_in(kind: Any, name: str, value: Any) -> Iterator[enum.Enum]:
    """The members of enumerations in a field's default; raises NoModel if it is no data."""
    left = [value]
    while left:
        each = left.pop()
        if type(each) in (list, tuple):
            left += each
        elif type(each) is dict:
            left += [*each.keys(), *each.values()]
        elif is_member(each):
            yield each
        elif type(each) not in (str, int, float, bool, type(None)):
            raise NoModel(f"the default of {kind.__name__}.{name} is a {type(each).__name__}")


def _config(kind: Any) -> dict[str, Any]:
    """The configuration of a class, without what its base has too."""
    above = kind.__bases__[0].model_config
    found = {k: v for k, v in kind.model_config.items() if above.get(k, MISSING) != v}
    for key, value in found.items():
        if key not in CONFIG or not isinstance(value, (str, int, float, bool, type(None))):
            raise NoModel(f"{key} of the configuration of {kind.__name__} is no data")
    if kind.model_config.get("extra") == "allow":
        raise NoModel(f"{kind.__name__} takes other attributes than its fields")
    return found


def _validators(kind: Any) -> Iterator[tuple[str, tuple[str, str, tuple[str, ...], int]]]:
    """The validators in a class itself: kind, mode, fields and number of arguments of each."""
    found = kind.__pydantic_decorators__
    for name, each in found.field_validators.items():
        if name in vars(kind):
            yield name, ("field", each.info.mode, tuple(each.info.fields), _length(kind, name))
    for name, each in found.model_validators.items():
        if name in vars(kind):
            yield name, ("model", each.info.mode, (), _length(kind, name))


def _length(kind: Any, name: str) -> int:
    function = vars(kind)[name]
    function = getattr(function, "__func__", getattr(function, "wrapped", function))
    if not isinstance(function, FunctionType) or function.__code__.co_flags & 0x0C:
        raise NoModel(f"{kind.__name__}.{name} is no plain function")
    return function.__code__.co_argcount


_OTHER_DECORATORS = (
    "validators", "root_validators", "field_serializers", "model_serializers", "computed_fields",
)  # fmt: skip


def _refuse_others(kind: Any) -> None:
    for name in _OTHER_DECORATORS:
        if getattr(kind.__pydantic_decorators__, name, None):
            raise NoModel(f"{kind.__name__} has {name.replace('_', ' ')}")
    made_for = getattr(kind, "__pydantic_generic_metadata__", {})
    if made_for.get("args") or made_for.get("parameters"):
        raise NoModel(f"{kind.__name__} is generic")
    if kind.__private_attributes__ or not kind.__pydantic_complete__:
        raise NoModel(f"{kind.__name__} has private attributes, or is not complete")
    if any(how[1] not in MODES for how in dict(_validators(kind)).values()):
        raise NoModel(f"{kind.__name__} has a validator that calls others")


def _written(value: Any) -> str:
    """A description as an expression."""
    if isinstance(value, type):
        return value.__name__
    if is_member(value):
        return f"{type(value).__name__}.{value.name}"
    if type(value) is dict:
        return "{" + ", ".join(f"{_written(k)}: {_written(v)}" for k, v in value.items()) + "}"
    if type(value) is tuple:
        return "(" + "".join(f"{_written(each)}, " for each in value) + ")"
    if type(value) is list:
        return "[" + ", ".join(map(_written, value)) + "]"
    return repr(value)


def node_of(found: Described, methods: list[ast.FunctionDef]) -> ast.ClassDef:
    """The class statement of code."""
    text = f"class {found.kind.__name__}({found.base}):\n    {DESCRIBED} = {found.text}\n"
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.ClassDef)
    node.body += methods
    return node


def _plain(schema: Any) -> Any:
    """A schema of pydantic_core without the parts that differ between equal classes."""
    if isinstance(schema, Mapping):
        return {
            key: _plain(each) for key, each in schema.items() if key not in ("metadata", "title")
        } | {"title": str(schema.get("title"))}
    if isinstance(schema, (list, tuple)):
        return [_plain(each) for each in schema]
    if isinstance(schema, type):
        return f"class {schema.__name__}"
    if isinstance(schema, str):
        return _REFERENCE.sub(r"\1", schema)
    if callable(schema):
        return "a function"
    return repr(schema)
