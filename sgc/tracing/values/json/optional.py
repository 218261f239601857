"""Values that may be None."""

from __future__ import annotations

from typing import Any

from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.types import Kind
from sgc.tracing.kinds.row_types import OptionalType, RecordType
from sgc.tracing.values.computing import computed


def without_none(value: Any, type_: types.Type) -> Any:
    """None, or a value of the other type, by a decision, for a value that may be None."""
    if not isinstance(type_, OptionalType):
        return value
    session = value.session
    session.has_untyped = True
    if computed(session, "is_a", value, "NoneType"):
        return None
    if isinstance(type_.of, RecordType):
        return session.read(Symbol(value.symbol.name, type_.of))
    return computed(session, "as", value, _OF_KINDS[type_.of.kind], "", type_=type_.of)


_OF_KINDS = {
    Kind.TEXT: "str", Kind.INT: "int", Kind.FLOAT: "float", Kind.BOOL: "bool", Kind.LIST: "list",
    Kind.JSON: "tuple",
}  # fmt: skip
