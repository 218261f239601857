"""Parameters of a program: names, types and defaults from the Python function's signature."""

from __future__ import annotations

import inspect
import json
import types as python_types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sgc.core import shapes
from sgc.errors import ArgumentError, UsageError, closest, counted
from sgc.ir import types
from sgc.ir.graph import Lit, Operand
from sgc.ir.types import Type
from sgc.runtime.executor.interface.argument_shapes import lowered, made, misfit, shown
from sgc.runtime.executor.interface.arguments import fits, misfit_of
from sgc.runtime.executor.interface.failures import class_name

_TYPES: Mapping[Any, Type] = {
    str: types.TEXT,
    int: types.INT,
    float: types.FLOAT,
    bool: types.BOOL,
    "str": types.TEXT,
    "int": types.INT,
    "float": types.FLOAT,
    "bool": types.BOOL,
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    is_typed: its type is certain, not just assumed to be text. is_annotated: its type is from an
    annotation, not from the default, so arguments must have it. is_static: compiled programs have
    no such type, so its value must be known when compiling. schema: of its data, from its
    annotation, as JSON text; compiled programs check it, interpreted ones do not. classes: of the
    objects in it.
    """

    name: str
    type: Type
    is_typed: bool
    is_annotated: bool
    is_static: bool
    has_default: bool
    default: Any
    schema: str = ""
    classes: tuple[Any, ...] = ()

    @property
    def is_silent(self) -> bool:
        """Whether neither an annotation nor a default (other than None) gives its type."""
        says = self.default is not None if self.has_default else self.is_static
        return not (self.is_typed or says)

    @property
    def has_tuples(self) -> bool:
        return bool(self.schema) and shapes.holds_tuples(json.loads(self.schema))

    @property
    def default_operand(self) -> Operand | None:
        if not self.has_default or self.has_data:
            return None
        if isinstance(self.default, (list, tuple)):
            return tuple(map(Lit, self.default))
        return Lit(self.default)

    @property
    def has_data(self) -> bool:
        """Whether the default is data that no operand can hold; the schema then holds it."""
        is_empty = isinstance(self.default, list) and not self.default
        return bool(self.schema) and type(self.default) in (list, dict) and not is_empty


@dataclass(frozen=True, slots=True)
class Signature:
    """All parameters but the first, which is the stream.

    rest, options: the names of `*rest` and `**options`, if there are any; both are static.
    """

    function: str
    parameters: tuple[Parameter, ...]
    rest: str | None = None
    options: str | None = None

    @property
    def static(self) -> tuple[Parameter, ...]:
        return tuple(parameter for parameter in self.parameters if parameter.is_static)

    @property
    def optional(self) -> frozenset[str]:
        """The parameters of data whose default is None or data: a value may say more than the
        type."""
        found = (each for each in self.parameters if each.schema and each.has_default)
        return frozenset(each.name for each in found if each.default is None or each.has_data)

    @property
    def defaults(self) -> dict[str, Any]:
        return {each.name: each.default for each in self.parameters if each.has_default}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, with defaults filled in; raises ArgumentError listing all problems."""
        problems = []
        kwargs = dict(kwargs)
        positional = [name for name in self.names if name != self.options]
        given = dict(zip(positional, args, strict=False))
        if self.rest is not None:
            positional = positional[: positional.index(self.rest)]
            given = {name: given[name] for name in positional if name in given}
            given[self.rest] = tuple(args[len(positional) :])
        elif len(args) > len(positional):
            problems.append(f"takes {counted(len(positional), 'argument')}, found {len(args)}")
        if self.options is not None:
            extra = {name: value for name, value in kwargs.items() if name not in self.names}
            kwargs = {name: value for name, value in kwargs.items() if name in self.names}
            given[self.options] = {**kwargs.pop(self.options, {}), **extra}
        if self.rest is not None and self.rest in kwargs:
            given[self.rest] = tuple(kwargs.pop(self.rest))
        problems += [f"argument {name!r} is given twice" for name in kwargs if name in given]
        given |= kwargs
        problems += [
            f"unknown argument {name!r}{closest(name, self.names)}"
            for name in given
            if name not in self.names
        ]
        for parameter in self.parameters:
            if parameter.name not in given:
                if parameter.has_default:
                    given[parameter.name] = parameter.default
                else:
                    problems.append(f"missing argument {parameter.name!r}")
        if problems:
            raise ArgumentError(
                f"cannot run {self.function}: " + "; ".join(problems),
                hint=f"{self.function} takes: {', '.join(self.names) or 'no arguments'}",
            )
        return {name: given[name] for name in self.names}

    def call_arguments(
        self, arguments: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and keyword arguments for the Python function, after its stream."""
        if self.rest is None and self.options is None:
            return (), dict(arguments)
        named = {n: v for n, v in arguments.items() if n not in (self.rest, self.options)}
        options = dict(arguments[self.options]) if self.options is not None else {}
        if self.rest is None:
            return (), named | options
        n_before = self.names.index(self.rest)
        before = tuple(named.pop(name) for name in self.names[:n_before])
        return (*before, *arguments[self.rest]), named | options

    def types_of(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Type]:
        """Types, from the rows, of parameters that have none from an annotation or a default.

        Only for parameters whose values have one type in all rows. Text is left out, as it is
        assumed anyway, unless the default is None.
        """
        rows, found = tuple(rows), {}
        for parameter in self.parameters:
            if parameter.is_silent and rows and all(parameter.name in row for row in rows):
                kinds = {type_of(row[parameter.name]) for row in rows}
                type_ = kinds.pop() if len(kinds) == 1 else None
                if type_ is not None and (parameter.is_static or type_ != types.TEXT):
                    found[parameter.name] = type_
        return found

    def names_to_bind(
        self, rows: Iterable[Mapping[str, Any]], known: Mapping[str, Type]
    ) -> list[str]:
        """Parameters that some row gives and whose values must be known when compiling."""
        rows = tuple(rows)
        return [
            p.name
            for p in self.parameters
            if p.name not in known
            and any(p.name in row for row in rows)
            and (
                p.is_static
                or (p.is_silent and _is_other(p.name, rows))
                or ((p.has_tuples or p.classes) and _has_others(p, rows))
            )
        ]

    def objects(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments out of JSON, with objects of the program's classes for the dicts of their
        fields. Raises ArgumentError for fields that a class does not take."""
        found = dict(arguments)
        for each in self.parameters:
            if each.classes and each.name in found:
                classes = {class_name(kind): kind for kind in each.classes}
                schema = json.loads(each.schema)
                try:
                    found[each.name] = made(found[each.name], schema, classes)
                except (TypeError, ValueError) as error:
                    what = f"argument {each.name!r} of {self.function} must be {shown(schema)}"
                    raise ArgumentError(f"{what}: {error}") from error
        return found

    def check_types(self, arguments: Mapping[str, Any]) -> None:
        """Raises ArgumentError for values that are not of an annotated parameter's type."""
        problems = [
            misfit_of(p.name, arguments[p.name], p.type)
            for p in self.parameters
            if p.name in arguments and p.is_annotated and not fits(arguments[p.name], p.type)
        ]
        if problems:
            raise ArgumentError(f"cannot run {self.function}: " + "; ".join(problems))

    def check_bound(self, bound: Mapping[str, Any]) -> None:
        """Raises ArgumentError for bound names that do not exist, and for static ones left out."""
        self.check_types(bound)
        unknown = [name for name in bound if name not in self.names]
        if unknown:
            raise ArgumentError(
                f"{self.function} has no argument {unknown[0]!r} to bind",
                hint=f"it takes: {', '.join(self.names) or 'no arguments'}",
            )
        for parameter in self.static:
            if parameter.name not in bound and not parameter.has_default:
                raise ArgumentError(
                    f"argument {parameter.name!r} of {self.function} is no text, number, bool, "
                    "list or dict by its annotation, so its value must be known when compiling",
                    hint=f"--bind {parameter.name}=VALUE, or compile({parameter.name}=VALUE)",
                )


def type_of(value: Any) -> Type | None:
    """The type that a plain value would be annotated with; None if there is none."""
    if isinstance(value, list):
        items = {type_of(item) for item in value}
        item = items.pop() if len(items) == 1 else None
        return None if item is None else types.list_of(item)
    return _TYPES.get(type(value))


def _has_others(parameter: Parameter, rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a value of the parameter, for example from a JSON file, has lists in place of tuples,
    or dicts in place of objects."""
    schema, name = json.loads(parameter.schema), parameter.name
    values = (lowered(row[name], schema, takes_data=False) for row in rows if name in row)
    return any(misfit(value, schema) is not None for value in values)


def _is_other(name: str, rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a value of the parameter has no type that a parameter can have."""
    return any(type_of(row[name]) is None for row in rows if name in row)


def read_signature(function: python_types.FunctionType) -> Signature:
    """The signature of a program's Python function; raises UsageError if it is invalid."""
    found = list(inspect.signature(function).parameters.values())
    where = f"{function.__code__.co_filename.rsplit('/', 1)[-1]}:{function.__code__.co_firstlineno}"
    if not found:
        raise UsageError(
            f"{function.__name__} takes no stream; its first parameter must be one",
            where=where,
            hint=f"def {function.__name__}(s): …",
        )
    if found[0].name in ("self", "cls"):
        raise UsageError(
            f"{function.__name__} is a method; a program is a function of a stream",
            where=where,
            hint="define it outside the class",
        )
    for parameter in found:
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter is not found[0]:
            raise UsageError(
                f"{parameter.name} of {function.__name__} is positional-only; "
                "a program's arguments are given by name",
                where=where,
            )
    hints = _hints(function)
    parameters = [_parameter(p, hints.get(p.name, inspect.Parameter.empty)) for p in found[1:]]
    rest = next((p.name for p in found[1:] if p.kind is p.VAR_POSITIONAL), None)
    options = next((p.name for p in found[1:] if p.kind is p.VAR_KEYWORD), None)
    return Signature(function.__name__, tuple(parameters), rest, options)


def _hints(function: python_types.FunctionType) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        return dict(function.__annotations__)


def _parameter(parameter: inspect.Parameter, annotation: Any) -> Parameter:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        empty: Any = () if parameter.kind is parameter.VAR_POSITIONAL else {}
        return Parameter(
            parameter.name, types.TEXT, is_typed=False, is_annotated=False, is_static=True,
            has_default=True, default=empty,
        )  # fmt: skip
    has_default = parameter.default is not parameter.empty
    default = parameter.default if has_default else None
    annotated = _annotated(annotation)
    inferred = _TYPES.get(type(default)) if has_default else None
    type_ = annotated or inferred
    if has_default and default is None:
        annotated = inferred = type_ = None  # None has no type: the argument's value decides
    if annotated is None and (described := _described(parameter, annotation)) is not None:
        return described
    is_other = annotation is not parameter.empty and annotated is None
    is_other_default = annotated is None and inferred is None and has_default
    return Parameter(
        name=parameter.name,
        type=type_ or types.TEXT,
        is_typed=type_ is not None,
        is_annotated=annotated is not None,
        is_static=is_other or is_other_default,
        has_default=has_default,
        default=default,
    )


def _described(parameter: inspect.Parameter, annotation: Any) -> Parameter | None:
    """A parameter that is annotated as JSON data; None for others, and for one whose default a
    compiled program cannot keep.
    """
    has_default = parameter.default is not parameter.empty
    default = parameter.default if has_default else None
    schema = shapes.of_annotation(annotation) if annotation is not parameter.empty else None
    is_empty = isinstance(default, list) and not default
    is_kept = not has_default or is_empty or default is None or type(default) in _TYPES
    is_kept = is_kept or (schema is not None and not shapes.holds_objects(schema))
    if schema is None or not is_kept or (has_default and misfit(default, schema) is not None):
        return None
    return Parameter(
        name=parameter.name, type=shapes.type_of(schema), is_typed=True, is_annotated=False,
        is_static=False, has_default=has_default, default=default, schema=json.dumps(schema),
        classes=tuple(shapes.classes_in(annotation)),
    )  # fmt: skip


def _annotated(annotation: Any) -> Type | None:
    if isinstance(annotation, (type, str)) and annotation in _TYPES:
        return _TYPES[annotation]
    if typing.get_origin(annotation) is list:
        (item,) = typing.get_args(annotation) or (str,)
        inner = _annotated(item)
        return None if inner is None else types.list_of(inner)
    return None
