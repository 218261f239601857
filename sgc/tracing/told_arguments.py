"""Schemas of a program's arguments, which the trace relies on because each run checks them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sgc.core.shapes import holds_objects
from sgc.ir import types
from sgc.ir.graph import Guard, Param, Value
from sgc.ir.types import Type
from sgc.lang.definition import Definition
from sgc.runtime.executor.interface.argument_shapes import KIND, with_default
from sgc.tracing.callees import Wanted
from sgc.tracing.kinds.row_types import plain, told_type
from sgc.tracing.object_arguments import made_of
from sgc.tracing.values.json.abstract_json import refuse_patterns
from sgc.tracing.values.json.known_json import argument

if TYPE_CHECKING:
    from sgc.lang.signature import Parameter
    from sgc.tracing.session import TraceSession


def schemas_of(free: Iterable[Parameter], wanted: Wanted) -> dict[str, str]:
    """The schemas of arguments: from `wanted`, or else from the annotation, unless `wanted` gives
    the argument's type, as it does for an argument of a mapped function.
    """
    by_annotation = {p.name: p.schema for p in free if p.name not in wanted.types}
    found = {p.name: wanted.schemas.get(p.name) or by_annotation.get(p.name, "") for p in free}
    return {name: schema for name, schema in found.items() if schema}


def type_of(parameter: Parameter, schemas: Mapping[str, str]) -> Type:
    """The type of an argument, with the tuples of its schema."""
    text = schemas.get(parameter.name)
    schema = None if text is None else json.loads(text)
    if schema is None:
        return parameter.type
    # A run gets objects as the dicts of their fields.
    return types.JSON if holds_objects(schema) else told_type(schema)


def guards_of(schemas: Mapping[str, str], free: Iterable[Parameter]) -> tuple[Guard, ...]:
    """Guards of the arguments, and of the defaults that are data."""
    data = {p.name: p.default for p in free if p.has_default and p.has_data}
    return tuple(
        Guard(KIND, name, with_default(schema, data[name]) if name in data else schema)
        for name, schema in schemas.items()
    )


def told(
    session: TraceSession,
    function: Definition,
    arguments: Mapping[str, Any],
    schemas: Mapping[str, str],
) -> dict[str, Any]:
    """The arguments, with their schemas known; stops the trace if patterns inspect one of JSON."""
    body: Any = session.body(function.python)
    data = {n: text for n, text in schemas.items() if not holds_objects(json.loads(text))}
    refuse_patterns(body.__code__, [arguments[name] for name in data])
    others = schemas.keys() - data.keys()
    objects = {n: made_of(session, function, arguments[n], schemas[n]) for n in sorted(others)}
    session.note(objects)
    return {**arguments, **{n: argument(arguments[n], text) for n, text in data.items()}, **objects}


def param_of(parameter: Parameter, session: TraceSession) -> Param:
    """A parameter of the graph, with the type that its use in the trace gave it."""
    type_ = parameter.type
    if parameter.name in session.images and type_ == types.TEXT:
        type_ = types.MEDIA
    elif not parameter.is_typed:
        type_ = session.retyped.get(parameter.name, type_)
    return Param(Value(parameter.name, plain(type_)), parameter.default_operand)
