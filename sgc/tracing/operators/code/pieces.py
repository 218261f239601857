"""The operators that converted code calls for a piece of the program that becomes code."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from itertools import repeat
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from sgc.core.places import here
from sgc.core.session import current_session
from sgc.core.stops import INTERPRET
from sgc.core.symbols import Symbol
from sgc.core.watching import unhooked
from sgc.errors import TraceError
from sgc.ir import types
from sgc.ir.code import CodeError, parse_code
from sgc.ir.code_types import MAX_TYPE
from sgc.ir.graph import Lit, Operand, Ref
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Kind, Type
from sgc.runtime.executor.code.mutation import spares_parts
from sgc.tracing.code.bytecode import info_of
from sgc.tracing.code.frames import is_running
from sgc.tracing.code.handlers import forget_ended, is_caught
from sgc.tracing.kinds.generators import AbstractRandom
from sgc.tracing.kinds.held import frozen
from sgc.tracing.kinds.row_types import (
    OBJECT,
    RANDOM,
    DictType,
    MemberType,
    OptionalType,
    RecordType,
    RowType,
    annotation_of,
    joined_item,
    optional,
    plain,
    row_of,
)
from sgc.tracing.operators.code.replaced import copied_first, replaced
from sgc.tracing.pieces.choose import may_add_keys
from sgc.tracing.pieces.effects.at_once import is_done_at_once
from sgc.tracing.pieces.made import Made, Pieced, WrongGuess
from sgc.tracing.pieces.owned import (
    given_away,
    is_changeable,
    is_changed_in_place,
    is_owned,
    kept_by,
    parts_in,
    pythons_of,
    unowned,
    unread,
)
from sgc.tracing.pieces.piece import Piece
from sgc.tracing.pieces.text.constants import NotData
from sgc.tracing.values.abstract import (
    AbstractJson,
    AbstractList,
    AbstractObject,
    abstract,
)
from sgc.tracing.values.computing import computed
from sgc.tracing.values.items import type_of
from sgc.tracing.values.json.optional import without_none
from sgc.tracing.values.tool_failures import TracedTold, as_object, is_object

if TYPE_CHECKING:
    from sgc.tracing.inference.infer import Inferred


def piece(key: str, *values: Any) -> Any:
    """The abstract value of a piece, or the values of the variables that it sets."""
    return _piece(current_session(), key, values, sys._getframe(1))


def as_value(*values: Any) -> Any:
    """A `defaultdict` as a value of the graph, if nothing else refers to it; else the value."""
    return _as_value(current_session(), values, sys._getframe(1))


@unhooked
def _as_value(session: Any, values: tuple[Any, ...], frame: FrameType) -> Any:
    if session is None or not session.is_tracing or type(values[0]) is not defaultdict:
        return values[0]
    (owned,) = map(is_owned, values, [False], [frame], [session], [False])
    return session.valued(values[0]) if owned else values[0]


@unhooked
def _piece(session: Any, key: str, values: tuple[Any, ...], frame: FrameType) -> Any:
    found: Piece = session.sites.pieces[key]
    errors = [n for n, each in enumerate(values) if isinstance(each, TracedTold)]
    if any(not is_object(values[n]) for n in errors):
        _refuse(session, key, "it takes an error that is not data")
    for n in errors:  # only here is `values` copied: references to the values are counted below
        values = (*values[:n], as_object(values[n]), *values[n + 1 :])
    if not all(is_running(frame, name) for name in found.nonlocals):
        _refuse(session, key, "it changes a variable of a function that has returned")
    counts = bool(found.changes or found.replaced) or found.grouping is not None
    if counts:
        forget_ended()
    owned, are_shared = _owned(session, found, values, frame) if counts else ([], False)
    gone = replaced(session, found, values, frame)
    given = dict(zip(found.inputs, zip(values, owned or values, strict=True), strict=True))
    away = _away(found, given, frame) if found.changes and not are_shared else frozenset[str]()
    try:
        code = session.piece_code(found, values, frame.f_globals, away)
        types_of = tuple([code_type(given_type(arg)) for arg in code.args]) if gone else ()
        fresh = gone & copied_first(session, code, types_of) if gone else gone
        if fresh:
            code = session.piece_code(found, values, frame.f_globals, away, fresh)
    except (NotData, CodeError) as error:
        _refuse(session, key, str(error))
    changes = any(is_changeable(given[name][0]) for name in found.changes)
    does = changes or bool(found.writes)
    changed = found.changes if changes else frozenset[str]()
    may_add = any(isinstance(given[name][0], (defaultdict, AbstractObject)) for name in changed)
    pythons = pythons_of({name: given[name][0] for name in changed}, session.sites.classes)
    is_by_call = bool(changed and found.changers)  # a function may change a value, and then fail
    is_at_once = not is_by_call and is_done_at_once(found.plain, changed, may_add, pythons)
    if does and not is_at_once and is_caught():
        _refuse(session, key, "a handler may catch its error after it has changed something")
    if found.adds_before_hoisted and is_caught():
        _refuse(session, key, "a handler may catch an error of the value that it puts there")
    for name in found.changes:
        may_be = name in found.augmented and not is_changed_in_place(given[name][0])
        is_rebound, is_outer = may_be or name in found.rebound, spares_parts(code.code)
        why = unowned(session, *given[name], is_rebound=is_rebound, is_outer=is_outer)
        value: Any = given[name][0]
        if not why and isinstance(value, AbstractJson if is_outer else AbstractList):
            is_elsewhere = session.held.is_elsewhere(value.symbol.name, unread(frame))
            why = _HELD if is_elsewhere else ""
        if why and session.sites.is_guessed:
            session.end(WrongGuess(why))
        if why and session.sites.turn_round():
            session.end(Pieced(why))
        if why:
            hint, where = _CHANGED_ITEM if session.is_item(value) else _CHANGED, here()
            session.sites.told[where] = TraceError(why, where=where, hint=hint)
            _refuse(session, key, why)
    inputs = {name: value for name, (value, _) in given.items()}
    if (grouped := found.grouped) is not None:
        value, is_own = given[grouped]
        if type(value) in (list, dict, set) and not is_own:
            _refuse(session, key, "the grouped list may be changed under another name")
    try:
        made = _outputs(session, found, code, inputs, are_shared, away, gone, fresh)
        for name in found.changes:
            session.held.note_changed(inputs[name], found.spares_parts)
        return made
    except Exception as error:
        if isinstance(error, TracedTold):  # it may hold the code's arguments
            kept = kept_by(found, inputs, session.sites.classes)
            error.__dict__["kept"] = [(each, frozen(each)) for each in kept]
        raise


def _owned(
    session: Any, found: Piece, values: tuple[Any, ...], frame: FrameType
) -> tuple[list[bool], bool]:
    """For each input of a piece, whether the piece may change it; and whether parts of a list that
    the piece only sorts are held elsewhere."""
    held = [name in found.given for name in found.inputs]
    owned = [*map(is_owned, values, held, repeat(frame), repeat(session), repeat(False))]
    if all(owned) or not found.spares_parts:
        return owned, False
    return [*map(is_owned, values, held, repeat(frame), repeat(session), repeat(True))], True


def _away(found: Piece, given: Mapping[str, Any], frame: FrameType) -> frozenset[str]:
    """The inputs that only one variable refers to, and that nothing reads any more."""
    alone = {name: value for name, (value, is_owned) in given.items() if is_owned}
    return given_away(found, alone, frame, info_of(frame.f_code).after(frame.f_lasti).live)


def _refuse(session: Any, key: str, why: str) -> NoReturn:
    """Starts the trace anew without a piece."""
    if session.sites.is_guessed:
        session.end(WrongGuess(why))
    del session.sites.pieces[key]
    session.sites.refused.add(key)
    session.end(Pieced(why))
    raise AssertionError


def _outputs(
    session: Any,
    found: Piece,
    code: Made,
    given: Mapping[str, Any],
    are_shared: bool,
    away: frozenset[str],
    gone: frozenset[str],
    fresh: frozenset[str],
) -> Any:
    """The results of a piece. are_shared: whether parts of the lists that it sorts are held
    elsewhere; away: the inputs that nothing refers to after the piece; gone: such inputs whose
    parts may be held elsewhere; fresh: the lists among `gone` that the code copies first."""
    from sgc.tracing.inference.infer import inferred  # loads many modules
    from sgc.tracing.inference.sure_keys import never_fails

    call = found.grouping
    if call is not None and not (
        found.is_sure or never_fails(call, lambda name: given_type(given.get(name)))
    ):
        _refuse(session, found.key, "a key may fail after other groups have been used")
    others = {name: value for name, value in given.items() if name not in away | gone}
    kept = kept_by(found, others, session.sites.classes)
    kept += parts_in(given[name] for name in gone - away)
    kept += parts_in(given[name] for name in found.changes) if are_shared else []
    known = inferred(parse_code(code.code), tuple(code_type(given_type(arg)) for arg in code.args))
    if known.has_iterator:
        _refuse(session, found.key, "its result is an iterator, which is not data")
    own = {
        n: arg.symbol.name
        for n, arg in enumerate(code.args)
        if isinstance(arg, AbstractList) and session.is_made(arg.symbol)
    }
    session.handed |= {name for n, name in own.items() if n in known.shared}
    changed = [
        n for n, (arg, name) in enumerate(zip(code.args, code.inputs, strict=True))
        if is_changeable(arg) and name in found.changes
    ]  # fmt: skip
    ours = own.keys() & {*changed} | {n for n, name in enumerate(code.inputs) if name in fresh}
    if found.is_statement and not found.targets:
        _evaluated(session, code, OBJECT, changed)
        return None
    if not found.is_statement or len(found.targets) == 1:
        name = found.targets[0] if found.is_statement else ""
        type_ = _type_of(found, name, known.type, given)
        symbol = _evaluated(session, code, type_, changed, annotation_of(type_))
        value = without_none(abstract(symbol, session), type_)
        if _may_hold(type_, known):
            _hold(session, symbol, kept, code)
        _note_new(session, symbol, known.may_be[0], ours, code)
        if isinstance(value, AbstractList) and found.grouped is not None:
            of = given[found.grouped]
            value = (
                session.viewed(value, of, "")
                if isinstance(of, (AbstractList, AbstractJson))
                else value
            )
        return _taken(session, found, name, value, given)
    each = _at_most(
        [
            _type_of(found, name, type_, given)
            for name, type_ in zip(found.targets, known.items, strict=True)
        ]
    )
    symbol = _evaluated(
        session, code, types.list_of(OBJECT), changed, _gives_of(each), is_several=True
    )
    whole = abstract(symbol, session)
    _hold(session, symbol, kept, code)
    taken = [computed(session, "item", whole, n, type_=type_) for n, type_ in enumerate(each)]
    for value, may_be in zip(taken, known.may_be[1:], strict=True):
        if isinstance(value, AbstractList):
            _note_new(session, value.symbol, may_be, ours, code)
    return tuple(
        _taken(session, found, name, without_none(value, type_), given)
        for name, value, type_ in zip(found.targets, taken, each, strict=True)
    )


def _note_new(
    session: Any, symbol: Symbol, may_be: frozenset[int] | None, ours: Set[int], code: Made
) -> None:
    """Notes a result that is a list to which nothing else refers: code has made it, or it is the
    program's own list, which code has changed or copied. may_be: the arguments that the result may
    be; ours: the program's own lists among the arguments."""
    is_one = symbol.type.item is not None and not code.has_outside
    if is_one and may_be is not None and may_be <= ours:
        session.new.add(symbol.name)


def _gives_of(each: Sequence[Type]) -> str:
    """The type of several values."""
    is_told = any(type_ != OBJECT for type_ in each)
    return annotation_of(row_of(each)) if is_told else "list[object]"


def _at_most(each: list[Type]) -> list[Type]:
    """The types of several values, or OBJECT for each if the graph cannot write so long a type."""
    return each if len(annotation_of(row_of(each))) <= MAX_TYPE else [OBJECT] * len(each)


def _hold(session: Any, symbol: Symbol, kept: list[Any], code: Made) -> None:
    """Notes that a result of code may share parts with other values, so none of them may change."""
    session.held.hold(symbol, kept)
    if kept or code.has_outside:
        session.copies.add(symbol.name)


def _may_hold(type_: Type, known: Inferred) -> bool:
    """Whether a result may share parts with the code's arguments."""
    if type_ in FIXED:
        return False
    return type_.item is None or type_.item not in FIXED or known.may_share


_CHANGED = "change a copy of it that one variable has; or " + INTERPRET
_CHANGED_ITEM = 'change it by its list, `for i in range(len(xs)): xs[i]["k"] = v`; or ' + INTERPRET
_HELD = "a part of the changed value is also held elsewhere"
FIXED = (types.TEXT, types.INT, types.FLOAT, types.BOOL)


def _type_of(found: Piece, name: str, type_: Type, given: Mapping[str, Any]) -> Type:
    """The type of a variable; a list that is changed in place stays a list."""
    if name in found.changes - found.rebound and isinstance(given[name], AbstractList):
        before = given[name].symbol.type
        if isinstance(before, RecordType):  # changed in place, so its class stays
            is_told = isinstance(type_, RecordType) and type_.name == before.name
            return type_ if is_told else before.with_row([OBJECT] * len(before.row))
        if isinstance(given[name], AbstractJson):
            return OBJECT
        return type_ if type_.item is not None else types.list_of(OBJECT)
    return type_


def _taken(session: Any, found: Piece, name: str, value: Any, given: Mapping[str, Any]) -> Any:
    """The value of a variable that a piece sets, or of an input that it may change."""
    if isinstance(value, AbstractObject) and _is_defaulting(session, found, name, given):
        session.defaulting.add(value.symbol.name)
    if name in found.changes:
        before = given[name]
        if not is_changeable(before) and name not in found.writes:
            return before
        if name not in found.rebound and isinstance(before, AbstractRandom):
            before.becomes(value.symbol)
            return before
        if name not in found.rebound and isinstance(before, AbstractList):
            session.note_changed(before.symbol)
            before.symbol = value.symbol  # so every reference to it has the new value
            return before
    return session.seen(value)


def _is_defaulting(session: Any, found: Piece, name: str, given: Mapping[str, Any]) -> bool:
    """Whether the new value of a variable may be a `defaultdict`."""
    if name in found.made_defaulting:
        return True
    return name in found.changes and may_add_keys(session, given[name])


def _evaluated(
    session: Any,
    code: Made,
    type_: Type,
    changed: list[int],
    gives: str = "",
    is_several: bool = False,
) -> Symbol:
    fields: dict[str, Any] = {"args": tuple(_operand(session, arg) for arg in code.args)}
    if gives not in ("", annotation_of(plain(type_))):  # a type that the graph does not have
        fields["gives"] = Lit(gives)
    if changed:
        fields["changed"] = tuple(map(Lit, changed))
    if is_several:
        fields["is_several"] = Lit(True)
    (value,) = session.emit("evaluate", [("v", type_)], code=Lit(code.code), **fields)
    session.raise_failed(value)
    return value  # type: ignore[no-any-return]


def _operand(session: Any, value: Any) -> Operand:
    """An argument of code, which may draw from a generator."""
    if type(value) is AbstractRandom:
        return Ref(value.symbol.name)
    found: Operand = session.operand(value)
    return found


def given_type(value: Any) -> Type:
    """The type of an argument of code."""
    if type(value) is list:
        return types.list_of(joined_item(map(given_type, value)) if value else OBJECT)
    known = value.session.dict_type(value.symbol) if isinstance(value, AbstractObject) else None
    return known or type_of(value)


def code_type(of: Type) -> Type:
    """The type of a value as code sees it."""
    if of.kind in TEXTUAL:
        return types.TEXT
    if of.kind is Kind.LIST:
        return types.list_of(OBJECT if of.item is None else code_type(of.item))
    if isinstance(of, RowType) and of.keys is None:
        return row_of(map(code_type, of.row))
    if isinstance(of, OptionalType):
        return optional(code_type(of.of))
    if isinstance(of, RecordType):
        return of.with_row(map(code_type, of.row))
    is_told = of in (types.INT, types.FLOAT, types.BOOL, RANDOM)
    is_told = is_told or isinstance(of, (MemberType, DictType))
    return of if is_told else OBJECT
