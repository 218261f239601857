"""Checks a run's arguments against a program's parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sgc.errors import ArgumentError, closest
from sgc.ir.graph import Graph, Lit, Operand, Param
from sgc.ir.types import Kind, Type
from sgc.runtime.executor.interface.argument_shapes import (
    default_of,
    has_default,
    lowered,
    problem,
    schemas_of,
)
from sgc.runtime.executor.interface.media import Media

_PYTHON: Mapping[Kind, tuple[type, ...]] = {
    Kind.TEXT: (str,),
    Kind.CHOICE: (str,),
    Kind.INT: (int,),
    Kind.FLOAT: (int, float),
    Kind.BOOL: (bool,),
}


def bind_arguments(graph: Graph, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of all parameters, defaults filled in.

    Raises ArgumentError, which lists every missing, surplus and wrongly typed argument.
    """
    names = [param.value.name for param in graph.params]
    schemas = schemas_of(graph)
    data = {name: default_of(schema) for name, schema in schemas.items() if has_default(schema)}
    given = {**{name: data[name] for name in names if name in data}, **given}
    problems = [
        f"missing argument {p.value.name!r} ({p.value.type})"
        for p in graph.params
        if p.default is None and p.value.name not in given
    ]
    fixed = {guard.name for guard in graph.guards if guard.kind == "static"}
    problems += [
        f"argument {name!r} was fixed when compiling (compile with --bind {name}=…)"
        if name in fixed
        else f"unknown argument {name!r}{closest(name, names)}"
        for name in given
        if name not in names
    ]
    values: dict[str, Any] = {}
    for param in graph.params:
        name, expected = param.value.name, param.value.type
        if name in given:
            value = lowered(given[name], schemas.get(name, {}))
            if name in schemas:
                problems += filter(None, [problem(name, value, schemas[name])])
            elif not fits(given[name], expected):
                problems.append(misfit_of(name, given[name], expected))
            values[name] = value
        elif param.default is not None:
            values[name] = _literal(param.default)
    if problems:
        wrong = [p for p in graph.params if p.value.name in given
                 and not fits(given[p.value.name], p.value.type)]  # fmt: skip
        takes = ", ".join(_signature(param) for param in graph.params) or "no arguments"
        raise ArgumentError(
            f"cannot run {graph.name}: " + "; ".join(problems),
            hint=f"{graph.name} takes: {takes}" + "".join(_other(p, given) for p in wrong),
        )
    return values


def _other(param: Param, given: Mapping[str, Any]) -> str:
    """Hints at the annotation that accepts the type of a wrong argument, if there is one."""
    name = param.value.name
    type_ = _annotation(given[name])
    return f"; for a program that takes {type_}, annotate `{name}: {type_}`" if type_ else ""


def _annotation(value: Any) -> str:
    if isinstance(value, list):
        items = {_annotation(item) for item in value}
        item = items.pop() if len(items) == 1 else ""
        return f"list[{item}]" if item else ""
    return type(value).__name__ if type(value) in (str, int, float, bool) else ""


def fits(value: Any, expected: Type) -> bool:
    """Whether a Python value has a type; True is no int."""
    if expected.kind is Kind.LIST:
        assert expected.item is not None
        item = expected.item
        return isinstance(value, (list, tuple)) and all(fits(element, item) for element in value)
    if expected.kind is Kind.JSON:
        return True
    if expected.kind is Kind.MEDIA:
        is_named = isinstance(value, (str, os.PathLike, bytes, bytearray, memoryview, Media))
        return is_named or callable(getattr(value, "save", None))
    types = _PYTHON.get(expected.kind, ())
    return isinstance(value, types) and (isinstance(value, bool) == (expected.kind is Kind.BOOL))


def misfit_of(name: str, value: Any, expected: Type) -> str:
    """The message about an argument that does not fit; of a list it names the first wrong item."""
    told, at = f"argument {name!r} must be {expected}", name
    while expected.item is not None and isinstance(value, (list, tuple)):
        item = expected.item
        n = next(n for n, element in enumerate(value) if not fits(element, item))
        value, expected, at = value[n], item, f"{at}[{n}]"
    part = "" if at == name else f": {at} must be {expected}"
    return f"{told}{part}, found {_describe(value)}"


def _describe(value: Any) -> str:
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 60 else shown[:57] + '...'}"


def _signature(param: Param) -> str:
    default = "" if param.default is None else f" = {_literal(param.default)!r}"
    return f"{param.value.name}: {param.value.type}{default}"


def _literal(operand: Operand) -> Any:
    if isinstance(operand, tuple):
        return [_literal(item) for item in operand]
    assert isinstance(operand, Lit)
    return operand.value
