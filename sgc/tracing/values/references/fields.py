"""The types of attributes of objects that references stand for, and who else has their lists."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any

from sgc.core.places import is_users
from sgc.core.stops import INTERPRET
from sgc.ir import types
from sgc.ir.graph import Lit
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Type
from sgc.tracing.code.frames import N_OF_LOOK
from sgc.tracing.kinds.row_types import (
    NOTHING,
    OptionalType,
    RefType,
    RowType,
    holds_references,
    joined_item,
)
from sgc.tracing.kinds.row_types import (
    joined as joined_types,
)
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.items import type_of
from sgc.tracing.values.references.reference import refuse

_SCALARS = (types.TEXT, types.INT, types.FLOAT, types.BOOL)


def cells(name: str, key: str) -> str:
    return f"{name}.{key}"


def field_type(value: Any) -> Type:
    """The type of what an attribute is set to; of a list, with that of its items."""
    if type(value) is list:
        return types.list_of(joined_item(map(_item_type, value)) if value else NOTHING)
    if isinstance(value, AbstractList) and value.is_live:
        return value.whole_type
    if type(value) is AbstractList:
        return types.list_of(allowed(value.item_type))
    return allowed(NOTHING if value is None else type_of(value))


def _item_type(value: Any) -> Type:
    return allowed(type_of(value))


def allowed(type_: Type) -> Type:
    """A type, if nothing of it can be changed: what can be changed would have to be an object."""
    if type_.kind in TEXTUAL:
        return types.TEXT
    is_one = type_ in _SCALARS or isinstance(type_, RefType) or type_ == NOTHING
    if isinstance(type_, RowType) and type_.keys is None:
        is_one = all(map(allowed, type_.row))
    if isinstance(type_, OptionalType):
        is_one = bool(allowed(type_.of))
    if not is_one:
        refuse("an attribute is neither text, number, bool, object, nor a list of them", INTERPRET)
    return type_


def joined(name: str, key: str, known: Type | None, found: Type) -> Type:
    if known is None or known == found:
        return found
    if known.item is not None and found.item is not None:
        items = {known.item, found.item} - {NOTHING}
        if len(items) == 1:
            return types.list_of(items.pop())
        wider: Type | None = types.list_of(joined_item(items))
    else:
        wider = joined_types(known, found)
    if wider is None or wider == types.JSON:
        refuse(f"the attribute {key} of {name} has values of different types", INTERPRET)
    return wider


def is_held(value: Any, n_more: int) -> bool:
    """Whether others than one attribute have a value. n_more: how many more refer to it; variables
    of converted code do no longer."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame):
            for name, each in frame.f_locals.items():
                if each is value and not name.startswith("__sgc_"):
                    return True
                n_more -= (1 + N_OF_LOOK) * (each is value)
        frame = frame.f_back
    return n_more > 0


def held_by(young: dict[str, Any], key: str) -> int:
    """How many refer to a young object's attribute, beside the object."""
    return sys.getrefcount(young[key]) - _N_OF_YOUNG


def _counted() -> tuple[int, int]:
    """The reference counts of a value that one attribute alone has."""
    young: dict[str, Any] = {}
    young["key"] = []

    class Probe:
        n = 0

        def __setattr__(self, name: str, value: Any) -> None:
            type(self).n = sys.getrefcount(value)

    probe = Probe()
    probe.key = []  # type: ignore[attr-defined]
    return sys.getrefcount(young["key"]), Probe.n


_N_OF_YOUNG, N_OF_SET = _counted()


# -- what may be done with references -----------------------------------------------------------

_LISTS = frozenset({
    "insert", "item", "len", "plus", "push", "put", "slice", "times", "truth", "without",
})  # fmt: skip


def refuse_references(op: str, fields: Mapping[str, Any], types_: Iterable[Type | None]) -> None:
    """Stops the trace at what would take the number of an object for a value."""
    found = [each for each in types_ if each is not None and holds_references(each)]
    if not found or op in ("list", "record"):
        return
    if op in ("compute", "attempt") and _is_fine(fields["fn"].value, fields["args"], found):
        return
    refuse("an object known only at run time is used otherwise than by its attributes", INTERPRET)


def _is_fine(fn: str, args: Any, found: list[Type]) -> bool:
    if fn in ("is_a", "as"):
        return args[1] in (Lit("NoneType"), Lit("int"))
    if fn == "eq":
        return all(isinstance(each, RefType) for each in found)
    if fn == "truth":
        return found[0].item is not None
    return fn in _LISTS
