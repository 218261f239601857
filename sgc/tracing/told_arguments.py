"""Schemas of a program's arguments, which the trace relies on because each run checks them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sgc.core.shapes import holds_objects
from sgc.errors import TraceError
from sgc.ir import types
from sgc.ir.graph import Graph, Guard, Param, Value, operand_refs
from sgc.ir.ops import OPS
from sgc.ir.types import Kind, Type
from sgc.lang.definition import Definition
from sgc.runtime.executor.interface.argument_shapes import KIND, with_default
from sgc.tracing.callees import Wanted
from sgc.tracing.kinds.row_types import plain, told_type
from sgc.tracing.object_arguments import made_of
from sgc.tracing.values.abstract import INTERPRET
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


def refuse_images_as_texts(graph: Graph) -> None:
    """Raises TraceError for an image that the program uses as the text of its path, too, or whose
    default is a path."""
    images = {p.value.name: p.default for p in graph.params if p.value.type.kind is Kind.MEDIA}
    for node in graph.nodes():
        kinds = {spec.name: spec.kinds for spec in OPS[node.op].fields}
        for field, operand in node.fields:
            found = [name for name in operand_refs(operand) if name in images]
            if found and (node.op == "compute" or Kind.MEDIA not in kinds[field]):
                raise TraceError(
                    f"{found[0]} is an image's file, and is used as a text too",
                    where=str(node.loc or ""),
                    hint=f"give the text a parameter of its own; or {INTERPRET}",
                )
    for name, default in images.items():
        if default is not None:
            raise TraceError(
                f"{name} is an image's file, and has a path as its default",
                hint=f"give it at each call; or {INTERPRET}",
            )
