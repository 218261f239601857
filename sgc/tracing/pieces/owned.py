"""Decides whether code may change a variable's value: no other reference may see the change."""

from __future__ import annotations

import ast
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import repeat
from types import CodeType, FrameType
from typing import Any, Protocol

from sgc.core.places import is_users
from sgc.core.symbols import Symbol, has_symbol
from sgc.ir.types import Type
from sgc.tracing.code.bytecode import info_of
from sgc.tracing.code.frames import N_OF_LOOK, sharing
from sgc.tracing.kinds.generators import AbstractRandom
from sgc.tracing.kinds.held import Holdings
from sgc.tracing.kinds.members import is_member
from sgc.tracing.kinds.records import form_of, is_record, parts_of
from sgc.tracing.kinds.row_types import RecordType, RowType, StateType, is_unchangeable
from sgc.tracing.pieces.effects.holds import merged_names
from sgc.tracing.pieces.piece import Piece
from sgc.tracing.pieces.text.constants import FIXED
from sgc.tracing.values.abstract import AbstractJson, AbstractList
from sgc.tracing.values.live.abstract_live import AbstractLive

_OWN = "__sgc_"


class Holders(Protocol):
    """What a session knows of references to values: those that the tracer itself keeps, and which
    values of the graph nothing else holds."""

    @property
    def held(self) -> Holdings: ...

    def is_given(self, symbol: Symbol) -> bool: ...


def is_changeable(value: Any) -> bool:
    """Whether a value, or an item of a tuple or frozenset, is a mutable object."""
    if type(value) is AbstractLive or isinstance(value, (AbstractList, AbstractRandom)):
        return True
    if is_record(value):
        return not form_of(value) or any(map(is_changeable, parts_of(value).values()))
    if isinstance(value, (tuple, frozenset)):
        return any(map(is_changeable, value))
    return not isinstance(value, FIXED) and not has_symbol(value) and not is_member(value)


def is_changed_in_place(value: Any) -> bool:
    """Whether `value += other` surely changes the value, and binds no other object to the name."""
    if isinstance(value, AbstractList):
        return not isinstance(value, AbstractJson) and value.symbol.type.item is not None
    return type(value) in _GIVEN


def pythons_of(values: Mapping[str, Any], classes: Collection[str]) -> dict[str, bool]:
    """The values of Python's own container types, by name, each with whether all its contents are
    of Python's own types too: a method of such a value does what its name says. classes: the
    classes whose objects a value known only at run time may be or hold."""
    return {
        name: _holds_pythons(value, classes)
        for name, value in values.items()
        if _is_pythons(value, classes)
    }


def _is_pythons(value: Any, classes: Collection[str]) -> bool:
    if isinstance(value, AbstractList):
        type_ = value.symbol.type
        return not isinstance(type_, RecordType) and (type_.item is not None or not classes)
    return not is_record(value)


def _holds_pythons(value: Any, classes: Collection[str]) -> bool:
    if isinstance(value, AbstractList):
        item = value.symbol.type.item
        return not classes or (item is not None and is_unchangeable(item))
    parts = [part for part in _parts(value) if is_changeable(part)]
    return all(_is_pythons(part, classes) and _holds_pythons(part, classes) for part in parts)


def is_flat(value: Any) -> bool:
    """Whether only a list, dict or set itself can be changed, nothing in it."""
    if isinstance(value, AbstractList):
        type_ = value.symbol.type
        return is_unchangeable(type_ if type_.item is None else type_.item)
    return not any(map(is_changeable, _parts(value)))


def holds_rows(value: Any) -> bool:
    """Whether a list known only at run time holds rows or objects with unchangeable parts."""
    return isinstance(value, AbstractList) and _is_row(value.symbol.type.item)


def is_row(value: Any) -> bool:
    """Whether a value known only at run time is such a row or object."""
    return isinstance(value, AbstractJson) and _is_row(value.symbol.type)


def _is_row(type_: Type | None) -> bool:
    is_told = isinstance(type_, (RowType, RecordType)) and not isinstance(type_, StateType)
    return is_told and all(map(is_unchangeable, type_.row))  # type: ignore[union-attr]


def is_owned(
    value: Any, is_attribute: bool, frame: FrameType, holders: Holders, spares_parts: bool
) -> bool:
    """Whether only one variable of a frame, or one attribute, refers to a value, and only the value
    to its parts. spares_parts: whether the parts do not matter.

    The function counts references, so it must be called by `map` on the caller's `*values`, to
    which no other name of the caller refers.
    """
    local = frame.f_locals  # a copy of the variables, which adds one reference to each value
    if not is_changeable(value):
        return True
    n_allowed = _N_OF_ATTRIBUTE if is_attribute else _N_OF_VARIABLE
    # References by names that converted code gave to parts of earlier statements.
    n_over = n_names(local, value)
    for above in sharing(frame, value):
        n_allowed += N_OF_LOOK
        local = above.f_locals
        n_over += n_names(local, value)
    n_allowed += n_over * _N_OF_NAME + holders.held.count(value)
    if sys.getrefcount(value) > n_allowed:
        return False
    return spares_parts or _are_parts_owned(value, holders)


def _are_parts_owned(value: Any, holders: Holders) -> bool:
    return all(_is_part_owned(sys.getrefcount(part), part, holders) for part in _parts(value))


def n_names(local: Mapping[str, Any], value: Any) -> int:
    """How many of converted code's names for parts of statements refer to a value."""
    return sum(of is value for name, of in local.items() if name.startswith(_OWN))


def _is_part_owned(n_references: int, part: Any, holders: Holders) -> bool:
    if not is_changeable(part):
        return True
    if n_references > _N_OF_PART + holders.held.count(part):
        return False
    if isinstance(part, AbstractList):  # other values may hold the same list
        return holders.is_given(part.symbol)
    return _are_parts_owned(part, holders)


def _parts(value: Any) -> Iterator[Any]:
    if is_record(value):
        yield from parts_of(value).values()
    elif isinstance(value, dict):
        yield from value.values()
    elif not isinstance(value, AbstractList) and hasattr(type(value), "__iter__"):
        yield from value


def _counted() -> tuple[int, int, int]:
    """The reference counts that the functions above see for a value held by one variable, by one
    attribute, or by one list.
    """

    def of_value(value: Any, is_attribute: bool, frame: FrameType) -> int:
        local = frame.f_locals
        n_over = sum(local[name] is value for name in local if name.startswith("-"))
        assert not n_over
        return sys.getrefcount(value)

    def called(*values: Any) -> int:
        return next(map(of_value, values, [False], repeat(sys._getframe(1))))

    class Holder:
        def __init__(self) -> None:
            self.alone: list[Any] = []

    def of_variable() -> int:
        alone: list[Any] = []
        return called(alone)

    def of_attribute() -> int:
        holder = Holder()
        return called(holder.alone)

    def of_part(whole: list[Any]) -> int:
        return next(sys.getrefcount(part) for part in _parts(whole))

    return of_variable(), of_attribute(), of_part([[]])


_N_OF_VARIABLE, _N_OF_ATTRIBUTE, _N_OF_PART = _counted()
_N_OF_NAME = _N_OF_VARIABLE - _N_OF_ATTRIBUTE + 1


_GIVEN = (dict, list, set, Counter, defaultdict, OrderedDict, deque)


def live_after(code: CodeType, place: tuple[int, int, int, int]) -> Collection[str]:
    """The variables that may be read after a statement, by its place in the source."""
    first, _, last, _ = place
    offsets = [
        2 * n
        for n, (begins, ends, *_) in enumerate(code.co_positions())
        if begins is not None and ends is not None and first <= begins and ends <= last
    ]
    return info_of(code).after(offsets[-1]).live if offsets else code.co_varnames


def unread(frame: FrameType | None) -> Counter[int]:
    """The number of references by variables that nothing reads any more, in a frame and its
    callers, by the ids of the values."""
    found: Counter[int] = Counter()
    while frame is not None:
        if is_users(frame):
            code, local = frame.f_code, frame.f_locals
            live = {*info_of(code).after(frame.f_lasti).live, *code.co_cellvars, *code.co_freevars}
            for name in {*code.co_varnames}.intersection(local) - live:
                found[id(local[name])] += _N_OF_LOCAL
        frame = frame.f_back
    return found


# Up to Python 3.12, a frame also keeps a dict of its variables.
_N_OF_LOCAL = 2 if sys.version_info < (3, 13) else 1


def given_away(
    found: Piece, given: Mapping[str, Any], frame: FrameType, live: Collection[str]
) -> frozenset[str]:
    """The inputs of a piece that are Python's own lists and dicts and whose variables are not read
    after the piece. live: the variables that are read after it."""
    cells = {*frame.f_code.co_cellvars, *frame.f_code.co_freevars}
    return frozenset(
        name
        for name, value in given.items()
        if type(value) in _GIVEN and name in frame.f_code.co_varnames
        if name not in found.changes and name not in cells and name not in live
    )


def kept_by(found: Piece, given: Mapping[str, Any], classes: Collection[str]) -> list[Any]:
    """The lists, dicts and objects that may become parts of a piece's result. classes: as in
    `pythons_of`."""
    taken = found.taken
    changed = {name: given[name] for name in found.changes if is_changeable(given[name])}
    if changed and changed.keys() == pythons_of(changed, classes).keys():
        taken = taken - merged_names(found.plain)  # only their items become parts
    plain = {
        name: value
        for name, value in given.items()
        if name not in found.changes
        and is_changeable(value)
        and not isinstance(value, AbstractList)
        # A method of an object may return the object itself.
        and (name in taken or is_record(value) or not is_flat(value))
    }
    node = found.plain.value if isinstance(found.plain, (ast.Assign, ast.Expr)) else found.plain
    if isinstance(node, ast.Call) and not node.keywords:
        looked_at = [each.id for each in _looked_at(node) if isinstance(each, ast.Name)]
        return [
            value
            for name, value in plain.items()
            if name not in looked_at or any(map(is_changeable, _parts(value)))
        ]
    return [*plain.values()]


def parts_in(values: Iterable[Any]) -> list[Any]:
    """The changeable parts of some containers."""
    return [part for value in values for part in _parts(value) if is_changeable(part)]


def _looked_at(node: ast.Call) -> list[ast.expr]:
    """The operands of a call whose result may hold their parts, but not the operands themselves."""
    if isinstance(node.func, ast.Attribute):
        return [node.func.value]
    is_one = isinstance(node.func, ast.Name) and node.func.id in _LOOKS and len(node.args) == 1
    return node.args if is_one else []


_LOOKS = frozenset({"max", "min", "sum", "sorted", "list", "tuple", "set", "dict", "len", "str"})


def unowned(session: Any, value: Any, owned: bool, is_rebound: bool, is_outer: bool) -> str:
    """Why code may not change a value that others may see; empty if it may. is_outer: whether the
    code changes only the value itself, none of its parts."""
    if isinstance(value, AbstractRandom):
        is_free = owned or not is_rebound
    elif isinstance(value, AbstractList):
        is_own = session.is_given(value.symbol) or (is_outer and session.is_made(value.symbol))
        is_free = is_own and (owned or not is_rebound)
    else:
        is_free = owned or not is_changeable(value)
    if is_free:
        return ""
    return _changed(session, value) + ", and its new value is known only at run time"


def _changed(session: Any, value: Any) -> str:
    if isinstance(value, AbstractJson):
        return f"{session.name_of(value.symbol)}, a value out of JSON, is changed"
    if isinstance(value, AbstractList):
        return f"{session.name_of(value.symbol)}, a list of others, is changed"
    return f"a {type(value).__name__} is changed that is held in several places"
