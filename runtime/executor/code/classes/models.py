"""Pydantic models of a graph's code: classes made from a description that is data.

`_described` of such a class has its fields (a type, and the arguments of `Field`), its
configuration and its validators (kind, mode, fields and number of arguments). Types are names or
tuples of a few kinds, never texts that pydantic would evaluate.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Union

from sgc.errors import ProgramError
from sgc.runtime.executor.code.fuel import NotAllowed, charge
from sgc.runtime.executor.code.walking import walked
from sgc.runtime.executor.interface.records import record_of

DESCRIBED = "_described"
_SCALARS: Mapping[str, Any] = {
    "str": str, "int": int, "float": float, "bool": bool, "None": None, "any": Any, "list": list,
    "dict": dict, "date": date, "datetime": datetime, "time": time, "timedelta": timedelta,
    "Decimal": Decimal,
}  # fmt: skip
_TIMES_AND_NUMBERS = (date, time, timedelta, Decimal)
_HOLDING = frozenset({"list", "dict", "tuple", "union"})
FACTORIES: Mapping[str, Any] = {"list": list, "dict": dict, "str": str, "int": int}
FIELD = frozenset({
    "gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern", "strict", "title",
    "description", "alias", "validation_alias", "serialization_alias", "frozen", "allow_inf_nan",
})  # fmt: skip
CONFIG = frozenset({
    "extra", "frozen", "str_strip_whitespace", "str_to_lower", "str_to_upper", "str_min_length",
    "str_max_length", "strict", "populate_by_name", "validate_by_name", "validate_by_alias",
    "validate_default", "allow_inf_nan", "title", "hide_input_in_errors",
})  # fmt: skip
MODES = frozenset({"before", "after", "plain"})
_DATA = (str, int, float, bool, type(None))
DUMPING = frozenset({
    "mode", "by_alias", "exclude_none", "exclude_defaults", "include", "exclude", "indent",
})  # fmt: skip


def pydantic() -> Any:
    """The module, which is an optional package."""
    try:
        import pydantic
    except ImportError as error:
        raise ProgramError(
            "the program uses pydantic's models, and pydantic is not installed",
            hint="pip install 'sgc[types]'",
        ) from error
    return pydantic


def is_model(kind: Any) -> bool:
    """Whether a class of the code, or pydantic's own base, is a model."""
    record = record_of(kind)
    return record.is_model if record is not None else hasattr(kind, "model_validate_json")


def typed(form: Any, is_class: Callable[[Any], bool]) -> Any:
    """The type that a form describes. is_class: whether a class may be a part of the type."""
    if type(form) is str and form in _SCALARS:
        return _SCALARS[form]
    if isinstance(form, type) and is_class(form):
        return form
    if type(form) is not tuple or not form:
        raise NotAllowed(f"{form!r} is no type of a model's field")
    kind, *parts = form
    if kind == "literal" and parts and all(type(each) in (str, int, bool) for each in parts):
        return Literal[tuple(parts)]
    inner = [typed(each, is_class) for each in parts] if kind in _HOLDING else []
    if kind == "list" and len(inner) == 1:
        return list[inner[0]]  # type: ignore[valid-type]
    if kind == "dict" and len(inner) == 2:
        return dict[inner[0], inner[1]]  # type: ignore[valid-type]
    if kind == "tuple" and inner:
        return tuple[tuple(inner)]  # type: ignore[misc]
    if kind == "union" and len(inner) > 1:
        return Union.__getitem__(tuple(inner))
    if kind == "annotated" and len(parts) == 2 and type(parts[1]) is dict:
        return Annotated[typed(parts[0], is_class), pydantic().Field(**_given(parts[1], FIELD))]
    raise NotAllowed(f"{form!r} is no type of a model's field")


def _given(found: Any, known: frozenset[str]) -> dict[str, Any]:
    for name, value in found.items():
        if name not in known or type(value) not in _DATA:
            raise NotAllowed(f"{name}={value!r} is not allowed in a model of a graph's code")
    return dict(found)


def fields_of(described: Any, is_class: Callable[[Any], bool]) -> dict[str, tuple[Any, Any]]:
    """The type and `Field(...)` of each field."""
    found: dict[str, tuple[Any, Any]] = {}
    for name, how in described["fields"].items():
        given = dict(how)
        type_ = typed(given.pop("type"), is_class)
        options: dict[str, Any] = {}
        if "default" in given:
            _cost_of(given["default"], Enum)
            options["default"] = copy.deepcopy(given.pop("default"))
        if "default_factory" in given:
            options["default_factory"] = FACTORIES[given.pop("default_factory")]
        is_name = type(name) is str and name.isidentifier()
        if not is_name or name.startswith(("_", "model_")):
            raise NotAllowed(f"{name!r} is no field of a model")
        found[name] = type_, pydantic().Field(**options, **_given(given, FIELD))
    return found


def namespace(
    described: Any,
    methods: Mapping[str, Callable[..., Any]],
    is_class: Callable[[Any], bool],
) -> dict[str, Any]:
    """The names that a class statement would bind. methods: the validators."""
    if type(described) is not dict or described.keys() != {"fields", "config", "validators"}:
        raise NotAllowed("a model has no description")
    fields = fields_of(described, is_class)
    space: dict[str, Any] = {"__annotations__": {name: of for name, (of, _) in fields.items()}}
    space |= {name: field for name, (_, field) in fields.items()}
    config = _given(described["config"], CONFIG)
    if config.get("extra") == "allow":
        raise NotAllowed("a model with other attributes than its fields")
    if config:
        space["model_config"] = pydantic().ConfigDict(**config)
    for name, how in described["validators"].items():
        space[name] = _validator(methods[name], *how)
    return space


def _validator(method: Callable[..., Any], kind: str, mode: str, fields: Any, n_args: int) -> Any:
    """A method as pydantic's validator; pydantic calls it by the number of its arguments."""
    if kind == "field" and mode in MODES:
        decorated = pydantic().field_validator(*fields, mode=mode)
        return decorated(classmethod(_of_length(method, n_args)))
    if kind == "model" and mode in ("before", "after"):
        function = _of_length(method, n_args)
        decorated = pydantic().model_validator(mode=mode)
        return decorated(classmethod(function) if mode == "before" else function)
    raise NotAllowed(f"a {mode!r} validator of a {kind!r} is not allowed in a graph's code")


def _of_length(method: Callable[..., Any], n_args: int) -> Any:
    found: Mapping[int, Any] = {
        1: lambda of: method(of),
        2: lambda of, value: method(of, value),
        3: lambda of, value, info: method(of, value, info),
    }
    if n_args not in found:
        raise NotAllowed(f"a validator with {n_args} arguments")
    return found[n_args]


# -- the methods of models ---------------------------------------------------------------------


def _walk(value: Any) -> None:
    charge(_cost_of(value))


def _cost_of(value: Any, *others: type) -> int:
    """The cost of a whole value; refuses values that are not data, such as endless iterators, or of
    other types."""
    cost = 0
    for each, parts, has_parts in walked(value):
        if not has_parts and not isinstance(each, (*_DATA, *_TIMES_AND_NUMBERS, bytes, *others)):
            raise NotAllowed(f"a {type(each).__name__} is given to a model in a graph's code")
        cost += 8 + len(parts) + (len(each) >> 2 if isinstance(each, (str, bytes)) else 0)
    return cost


def _dumping(name: str) -> Any:
    def dump(self: Any, /, **kwargs: Any) -> Any:
        unknown = sorted(kwargs.keys() - DUMPING)
        if unknown:
            raise NotAllowed(f"{name} takes no {unknown[0]} in a graph's code")
        _walk([self, *kwargs.values()])
        return getattr(pydantic().BaseModel, name)(self, **kwargs)

    return dump


def _reading(name: str) -> Any:
    def read(cls: Any, data: Any, /, *, strict: bool | None = None) -> Any:
        _walk(data)
        return _read(cls, name, data, strict)

    return classmethod(read)


def _read(cls: Any, name: str, data: Any, strict: bool | None) -> Any:
    method = vars(pydantic().BaseModel)[name].__func__
    return method(cls, data, strict=strict)


def _model_copy(self: Any, /, *, update: Any = None, deep: bool = False) -> Any:
    _walk([self, update])
    return pydantic().BaseModel.model_copy(self, update=update, deep=deep)


def new(kind: Any, /, *args: Any, **kwargs: Any) -> Any:
    charge(8)
    _walk([*args, *kwargs.values()])
    return object.__new__(kind)


METHODS: Mapping[str, Any] = {
    "model_dump": _dumping("model_dump"),
    "model_dump_json": _dumping("model_dump_json"),
    "model_validate": _reading("model_validate"),
    "model_validate_json": _reading("model_validate_json"),
    "model_copy": _model_copy,
}


def completed(made: Any) -> Any:
    """A model whose fields were set without validation, completed to look like one that pydantic
    has made. Which fields were given is not kept: code cannot ask for it.
    """
    object.__setattr__(made, "__pydantic_fields_set__", set())
    object.__setattr__(made, "__pydantic_extra__", None)
    object.__setattr__(made, "__pydantic_private__", None)
    return made
