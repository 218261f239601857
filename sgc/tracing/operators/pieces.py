"""The operators that converted code calls for a piece of the program that becomes code."""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any, NoReturn

from sgc.core.places import user_loc
from sgc.core.session import current_session
from sgc.core.stops import INTERPRET
from sgc.core.symbols import Symbol
from sgc.errors import TraceError
from sgc.ir import types
from sgc.ir.code import CodeError, parse_code
from sgc.ir.graph import Lit
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Kind, Type
from sgc.tracing.code.handlers import is_caught
from sgc.tracing.pieces.changes import is_done_at_once
from sgc.tracing.pieces.infer import output_types, result_type
from sgc.tracing.pieces.made import Made, Pieced
from sgc.tracing.pieces.module_text import NotData
from sgc.tracing.pieces.owned import is_changeable, is_owned, kept_by, unowned
from sgc.tracing.pieces.piece import Piece
from sgc.tracing.values.abstract import (
    AbstractJson,
    AbstractList,
    AbstractObject,
    abstract,
    is_abstract,
)
from sgc.tracing.values.abstract_list import frozen
from sgc.tracing.values.computing import computed
from sgc.tracing.values.row_types import OBJECT

MAX_DEPTH = 20


def is_run_time(*values: Any) -> bool:
    """Whether one of a piece's inputs is abstract or holds an abstract value."""
    session = current_session()
    return session is not None and session.is_tracing and _holds(values)


def _holds(values: Iterable[Any], depth: int = MAX_DEPTH) -> bool:
    return any(is_abstract(value) or _is_part_held(value, depth) for value in values)


def _is_part_held(value: Any, depth: int) -> bool:
    if not depth or not isinstance(value, (dict, list, tuple, set, frozenset, deque)):
        return False
    parts = (*value, *value.values()) if isinstance(value, dict) else value
    return _holds(parts, depth - 1)


def piece(key: str, *values: Any) -> Any:
    """The abstract value of a piece, or those of the variables that it sets."""
    session: Any = current_session()
    found: Piece = session.sites.pieces[key]
    frame = sys._getframe(1)
    held = [name in found.given for name in found.inputs]
    owned = [*map(is_owned, values, held, repeat(frame))] if found.changes else []
    try:
        code = session.piece_code(found, values, frame.f_globals)
    except (NotData, CodeError) as error:
        _refuse(session, key, str(error))
    given = dict(zip(found.inputs, zip(values, owned or values, strict=True), strict=True))
    changes = any(is_changeable(given[name][0]) for name in found.changes)
    does = changes or bool(found.writes)
    changed = found.changes if changes else frozenset[str]()
    may_add = any(isinstance(given[name][0], (defaultdict, AbstractObject)) for name in changed)
    if does and not is_done_at_once(found.plain, changed, may_add) and is_caught():
        _refuse(session, key, "an error in it is handled, after it has changed something")
    for name in found.changes:
        why = unowned(session, *given[name], is_rebound=name in found.rebound)
        if why:
            hint = "change a copy of it that one variable has; or " + INTERPRET
            where = str(user_loc() or "")
            session.sites.told[where] = TraceError(why, where=where, hint=hint)
            _refuse(session, key, why)
    session.handed |= {
        value.symbol.name
        for value in values
        if isinstance(value, AbstractList) and session.is_made(value.symbol)
    }
    return _outputs(session, found, code, {name: value for name, (value, _) in given.items()})


def _refuse(session: Any, key: str, why: str) -> NoReturn:
    """Starts the trace anew without a piece."""
    del session.sites.pieces[key]
    session.sites.refused.add(key)
    session.end(Pieced(why))
    raise AssertionError


def _outputs(session: Any, found: Piece, code: Made, given: Mapping[str, Any]) -> Any:
    parsed = parse_code(code.code)
    kept = kept_by(found, given)
    types_ = tuple(_type(session.type_of(session.operand(arg))) for arg in code.args)
    changed = [
        n for n, arg in enumerate(code.args)
        if is_changeable(arg) and any(arg is given[name] for name in found.changes)
    ]  # fmt: skip
    if found.is_statement and not found.targets:
        _evaluated(session, code, OBJECT, changed)
        return None
    if not found.is_statement or len(found.targets) == 1:
        name = found.targets[0] if found.is_statement else ""
        type_ = _type_of(found, name, result_type(parsed, types_), given)
        symbol = _evaluated(session, code, type_, changed)
        value = abstract(symbol, session)
        if _may_hold(type_):
            _hold(session, symbol, kept, code)
        return _taken(session, found, name, value, given)
    symbol = _evaluated(session, code, types.list_of(OBJECT), changed, is_several=True)
    whole, taken = abstract(symbol, session), []
    _hold(session, symbol, kept, code)
    for n, (name, type_) in enumerate(
        zip(found.targets, output_types(parsed, types_), strict=True)
    ):
        type_ = _type_of(found, name, type_, given)
        value = computed(session, "item", whole, n, type_=type_)
        taken.append(_taken(session, found, name, value, given))
    return tuple(taken)


def _hold(session: Any, symbol: Symbol, kept: list[Any], code: Made) -> None:
    """Notes that a result of code may share parts with other values, so that none may change."""
    session.held += [(value, frozen(value)) for value in kept]
    if kept or code.has_outside:
        session.copies.add(symbol.name)


def _may_hold(type_: Type) -> bool:
    return type_ not in _FIXED and (type_.item is None or type_.item not in _FIXED)


_FIXED = (types.TEXT, types.INT, types.FLOAT, types.BOOL)


def _type_of(found: Piece, name: str, type_: Type, given: Mapping[str, Any]) -> Type:
    """The type of a variable; a variable that is changed in place keeps its own."""
    if name in found.changes - found.rebound and isinstance(given[name], AbstractList):
        return OBJECT if isinstance(given[name], AbstractJson) else types.list_of(OBJECT)
    return type_


def _taken(session: Any, found: Piece, name: str, value: Any, given: Mapping[str, Any]) -> Any:
    """The value of a variable that a piece sets, or of an input that it may change."""
    if name in found.changes:
        before = given[name]
        if not is_changeable(before) and name not in found.writes:
            return before
        if name not in found.rebound and isinstance(before, AbstractList):
            session.note_changed(before.symbol)
            before.symbol = value.symbol  # so every reference to it has the new value
            return before
    return session.seen(value)


def _evaluated(
    session: Any, code: Made, type_: Type, changed: list[int], is_several: bool = False
) -> Symbol:
    fields: dict[str, Any] = {"args": tuple(map(session.operand, code.args))}
    if changed:
        fields["changed"] = tuple(map(Lit, changed))
    if is_several:
        fields["is_several"] = Lit(True)
    (value,) = session.emit("evaluate", [("v", type_)], code=Lit(code.code), **fields)
    session.raise_failed(value)
    return value  # type: ignore[no-any-return]


def _type(of: Type) -> Type:
    """The type of a value as code sees it."""
    if of.kind in TEXTUAL:
        return types.TEXT
    if of.kind is Kind.LIST:
        return types.list_of(OBJECT if of.item is None else _type(of.item))
    return of if of in (types.INT, types.FLOAT, types.BOOL) else OBJECT
