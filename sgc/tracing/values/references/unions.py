"""Types of values that cannot be changed and may be of several types: a text or a number, tuples of
several lengths, members of an enumeration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sgc.core.session import current_session
from sgc.ir import types
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Type
from sgc.tracing.kinds.row_types import (
    NOTHING,
    MemberType,
    OptionalType,
    RowType,
    UnionType,
    holds_references,
    is_unchangeable,
    joined,
    row_of,
)

_ORDER = (NOTHING, types.BOOL, types.INT, types.FLOAT, types.TEXT)  # in which they are told apart


def covering(found: Iterable[Type]) -> Type | None:
    """The type that covers types of what cannot be changed; None if there is none."""
    wider: Type | None = None
    for each in found:
        wider = each if wider is None else _both(wider, each)
        if wider is None:
            return None
    return wider


def arms_of(type_: Type) -> tuple[Type, ...]:
    """The types that a value of a type may have."""
    if isinstance(type_, UnionType):
        return type_.arms
    return (NOTHING, type_.of) if isinstance(type_, OptionalType) else (type_,)


def _both(one: Type, other: Type) -> Type | None:
    if one == other:
        return one
    if {one.kind, other.kind} <= TEXTUAL:
        return types.TEXT
    if _is_row(one) and _is_row(other) and _length(one) == _length(other):
        return _row(one, other)
    found = joined(one, other)
    if isinstance(found, OptionalType):
        return found
    return _union((*arms_of(one), *arms_of(other)))


def _row(one: Any, other: Any) -> Type | None:
    columns = [_both(*each) for each in zip(one.row, other.row, strict=True)]
    return None if None in columns else row_of(columns)  # type: ignore[arg-type]


def _union(found: tuple[Type, ...]) -> Type | None:
    arms: dict[Any, Type] = {}
    for each in found:
        key = _length(each) if _is_row(each) else each
        arm = _row(arms[key], each) if _is_row(each) and key in arms else each
        if arm is None or not _may_be_arm(arm):
            return None
        arms[key] = arm
    members = [each for each in arms.values() if isinstance(each, MemberType)]
    if len(members) > 1 or any(_is_one_of(members[0], each) for each in arms if members):
        return None
    return UnionType.of(sorted(arms.values(), key=_place))


def _may_be_arm(type_: Type) -> bool:
    is_plain = is_unchangeable(type_) and not holds_references(type_)
    return is_plain and (type_ in _ORDER or isinstance(type_, MemberType) or _is_row(type_))


def _is_one_of(member: MemberType, plain: Any) -> bool:
    """Whether members of an enumeration are texts or numbers of a type, too."""
    session: Any = current_session()
    of = session.sites.classes[member.name].kind
    kinds = {types.TEXT: str, types.INT: int, types.FLOAT: float, types.BOOL: int}
    return plain in kinds and issubclass(of, kinds[plain])


def _place(type_: Type) -> tuple[int, int]:
    if type_ in _ORDER:
        return (_ORDER.index(type_), 0)
    return (len(_ORDER), _length(type_)) if _is_row(type_) else (len(_ORDER) + 1, 0)


def _is_row(type_: Any) -> bool:
    return type(type_) is RowType and type_.keys is None


def _length(row: Any) -> int:
    return len(row.row)
