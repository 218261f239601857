"""Arguments that are objects of the user's classes: a run gets the data of their fields, from which
the graph makes objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sgc.core.shapes import OBJECT, Schema, as_data, holds_objects
from sgc.core.stops import INTERPRET, stop
from sgc.ir.code import CodeError
from sgc.ir.graph import Lit
from sgc.lang.definition import Definition
from sgc.runtime.executor.interface.failures import class_name
from sgc.tracing.kinds.records import restored
from sgc.tracing.kinds.row_types import told_type
from sgc.tracing.pieces.displayed import restoring
from sgc.tracing.pieces.text.constants import NotData
from sgc.tracing.values.json.known_json import argument

if TYPE_CHECKING:
    from sgc.tracing.session import TraceSession

Classes = Mapping[str, type]


def classes_of(function: Definition) -> Classes:
    """The classes whose objects a program takes, by their names in schemas."""
    return {class_name(kind): kind for p in function.signature.parameters for kind in p.classes}


def made_of(session: TraceSession, function: Definition, value: Any, schema_text: str) -> Any:
    """The argument as the program sees it. A single object is known while tracing, but its
    attributes are not; objects in a list or dict are made by code.
    """
    schema = json.loads(schema_text)
    try:
        return _made(session, classes_of(function), value, schema)
    except (NotData, CodeError) as error:
        stop(f"an argument is an object of a class that cannot be code: {error}", INTERPRET)


def _made(session: TraceSession, classes: Classes, value: Any, schema: Schema) -> Any:
    if schema.get("type") != OBJECT:
        return _coded(session, classes, value, schema)
    kind = classes[schema["class"]]
    known = argument(value, json.dumps(as_data(schema)))
    parts = {
        name: _made(session, classes, known[name], each) if holds_objects(each) else known[name]
        for name, each in schema["properties"].items()
    }
    made = restored(kind, parts)
    session.given += (made,)
    return made


def _coded(session: TraceSession, classes: Classes, value: Any, schema: Schema) -> Any:
    names = {name: kind.__name__ for name, kind in classes.items()}
    made = session.sites.note(
        restoring(session.originals, _expression("data", schema, names), classes.values())
    )
    # The code cannot fail: a run has checked the data before.
    kind = [("objects", told_type(schema))]
    (symbol,) = session.emit("evaluate", kind, code=Lit(made.code), args=(session.operand(value),))
    session.copies.add(symbol.name)  # the caller has the list, too
    return session.seen(session.read(symbol))


def _expression(of: str, schema: Schema, names: Mapping[str, str], depth: int = 0) -> str:
    """An expression of code that makes objects from data."""
    if not holds_objects(schema):
        return of
    each = f"each{depth}"
    if schema["type"] == "array":
        return f"[{_expression(each, schema['items'], names, depth + 1)} for {each} in {of}]"
    if schema["type"] == "object":
        inner = _expression(each, schema["additionalProperties"], names, depth + 1)
        return f"{{key{depth}: {inner} for key{depth}, {each} in {of}.items()}}"
    parts = ", ".join(
        f"{name!r}: {_expression(f'{of}[{name!r}]', part, names, depth)}"
        for name, part in schema["properties"].items()
    )
    return f"restored({names[schema['class']]}, {{{parts}}})"


def as_objects(value: Any, schema: Schema, classes: Classes) -> Any:
    """Data with the objects that its dicts stand for."""
    if not holds_objects(schema):
        return value
    if schema["type"] == "array":
        return [as_objects(item, schema["items"], classes) for item in value]
    if schema["type"] == "object":
        others = schema["additionalProperties"]
        return {key: as_objects(item, others, classes) for key, item in value.items()}
    parts = schema["properties"]
    held = {name: as_objects(value[name], each, classes) for name, each in parts.items()}
    return restored(classes[schema["class"]], held)
