"""The operators that converted code calls where a program's data are live objects."""

from __future__ import annotations

import ast
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from operator import is_
from types import FrameType, FunctionType
from typing import Any

from sgc.core.session import Stream, current_session
from sgc.core.stops import INTERPRET, stop
from sgc.core.watching import unhooked
from sgc.ir import types
from sgc.ir.code import CodeError
from sgc.ir.types import Type
from sgc.lang.definition import Definition
from sgc.lang.group import ProgramStateGroup
from sgc.lang.state import ProgramState
from sgc.lang.tools import Tool
from sgc.lang.words import Expr
from sgc.tracing.kinds.ended import EndedState
from sgc.tracing.kinds.members import is_member
from sgc.tracing.kinds.records import is_record, parts_of
from sgc.tracing.operators.code.run_time import is_run_time
from sgc.tracing.operators.live.results import FIXED, gives_of
from sgc.tracing.operators.live.scalars import is_traced
from sgc.tracing.pieces.displayed import displayed
from sgc.tracing.pieces.effects.kept_order import refuse_order_kept
from sgc.tracing.pieces.live import (
    LiveCode,
    bound_code,
    is_of_graph,
    live_code,
    piece_at,
)
from sgc.tracing.pieces.owned import n_names
from sgc.tracing.pieces.piece import Piece
from sgc.tracing.pieces.text.constants import NotData
from sgc.tracing.values.abstract import AbstractList, is_abstract
from sgc.tracing.values.live.abstract_live import AbstractLive
from sgc.tracing.values.live.outside import is_outside
from sgc.tracing.values.open_fork import EndedChild, OpenFork

_STREAMS = (Stream, EndedChild)
_ASKING = (Stream, EndedChild, EndedState, OpenFork, ProgramStateGroup, Definition, Tool, Expr)
_MUTABLE = frozenset({list, dict, set, deque, Counter, defaultdict, OrderedDict})
DISPLAYS = frozenset({"List", "Dict", "Set", "ListComp", "SetComp", "DictComp"})


def is_live(key: str, *values: Any) -> bool:
    """Whether the run performs a piece: the piece can become code, and it takes a value known only
    at run time or makes a value that can be changed."""
    session: Any = current_session()
    if session is None or not session.is_tracing or not session.sites.is_live:
        return False
    found = _written(session, key, values, sys._getframe(1))
    session.written = None if found is None else (key, values, found)
    return found is not None


def live(key: str, *values: Any) -> Any:
    """The value of a piece, or the values of the variables that it sets."""
    session: Any = current_session()
    kept, session.written = session.written, None  # nothing may hold the values any longer
    is_same = kept is not None and kept[0] == key and all(map(is_, kept[1], values))
    found = kept[2] if is_same else _written(session, key, values, sys._getframe(1))
    del kept
    if found is None:  # only where `is_live` was not called before
        stop("a comprehension inside of another cannot become code", INTERPRET)
    piece, code, gives = found
    results = session.performed(code.code, code.args, gives, is_whole=True)
    kind = _class_called(session, piece, sys._getframe(1))
    if kind is not None and type(results[0]) is AbstractLive:
        results[0].note_kind(kind)
    if not piece.is_statement:
        return results[0]
    if not piece.writes:
        return None
    return results[0] if len(piece.writes) == 1 else tuple(results)


def _class_called(session: Any, piece: Piece, frame: FrameType) -> type | None:
    """The module's class that `x = Class(…)` calls, if a piece is that."""
    node = piece.plain
    of = (
        node.value.func
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        else None
    )
    if not isinstance(of, ast.Name) or of.id in {*piece.inputs, *piece.writes}:
        return None
    found = session.originals(frame.f_globals).get(of.id)
    return found if isinstance(found, type) and len(piece.writes) == 1 else None


@unhooked
def _written(
    session: Any, key: str, values: tuple[Any, ...], frame: FrameType
) -> tuple[Piece, LiveCode, tuple[Type, ...]] | None:
    """A piece, its code and the types of its results; None if the piece is traced instead."""
    whole = piece = piece_at(key)
    assert piece is not None
    assert whole is not None
    given = dict(zip(piece.inputs, values, strict=True))
    streams = frozenset(name for name, each in given.items() if issubclass(type(each), _STREAMS))
    attributes = frozenset(_attributes(session, piece, given))
    if streams or attributes:
        piece = piece_at(key, streams, True, attributes)
        if piece is not None and not all(_is_there(each, given) for each in piece.given.values()):
            piece = piece_at(key, streams, False, attributes)
        if piece is None or not streams.isdisjoint(piece.inputs):
            return None
        if piece.writes != whole.writes:  # it sets an attribute
            return None
        if any(_key_of(of) not in {*given, None} for of in piece.given.values()):
            return None
        given = {
            name: _read(piece.given[name], given) if name in piece.given else given.get(name)
            for name in piece.inputs
        }
    if any(issubclass(type(each), (*_ASKING, BaseException)) for each in given.values()):
        return None  # an error's class is known only as far as its handlers tell
    is_made = key.rpartition(":")[2] in DISPLAYS
    is_known = not streams and not is_run_time(*given.values())
    if is_known and not is_made and not any(map(_has_live, given.values())):
        return None
    if is_traced(piece.plain, given):
        return None
    try:
        made = live_code(session, piece, given, frame.f_globals)
        gives = gives_of(made.code, made.args, max(1, len(piece.writes)))
        is_kept = piece.is_statement or gives[0] not in FIXED
        if is_kept and any(is_of_graph(each) for n, each in given.items() if n not in piece.given):
            raise NotData("a list of the graph would be a copy")
        refuse_order_kept(made.code, made.lost, is_kept)
        return piece, made, gives
    except (NotData, CodeError):
        return None  # it cannot become code, so it is traced as without live objects


def _attributes(session: Any, piece: Piece, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The attributes that a piece reads of objects known while tracing, with their variables."""
    objects = {name: parts_of(each) for name, each in given.items() if _is_known(session, each)}
    for node in ast.walk(piece.plain) if objects else ():
        name = getattr(node.value, "id", "") if isinstance(node, ast.Attribute) else ""
        if name in objects and node.attr in objects[name]:  # type: ignore[attr-defined]
            yield name, node.attr  # type: ignore[attr-defined]


def _is_known(session: Any, value: Any) -> bool:
    """Whether a value is an object of the program that is known while tracing."""
    if is_abstract(value) or isinstance(value, tuple) or not is_record(value) or is_member(value):
        return False
    return not is_outside(session, value)


def _has_live(value: Any, depth: int = 4) -> bool:
    """Whether a function uses a live object of an enclosing function."""
    if not isinstance(value, FunctionType) or not depth:
        return False
    for cell in value.__closure__ or ():
        try:
            found = cell.cell_contents
        except ValueError:
            continue
        if type(found) is AbstractLive or (found is not value and _has_live(found, depth - 1)):
            return True
    return False


def _is_there(node: Any, given: dict[str, Any]) -> bool:
    """Whether a stream surely has the variable that is read; an object has its attribute."""
    if isinstance(node, ast.Attribute):
        return True
    name = _key_of(node)
    key = given.get(name) if name is not None else node.slice.value
    stream = given.get(node.value.id)
    return type(key) is str and isinstance(stream, ProgramState) and stream.has_surely(key)


def _key_of(read: Any) -> str | None:
    """The variable that holds the key with which a stream is read; None for a constant key."""
    return getattr(getattr(read, "slice", None), "id", None)


def _read(node: Any, given: dict[str, Any]) -> Any:
    """The value that a piece reads from a stream, or from an object known while tracing."""
    if isinstance(node, ast.Attribute):
        return parts_of(given[node.value.id])[node.attr]  # type: ignore[attr-defined]
    name = _key_of(node)
    key = given[name] if name is not None else node.slice.value
    return given[node.value.id][key]


def born(value: Any, is_variables: bool = False) -> Any:
    """A new list, dict or object of the program as a live one, unless it holds streams.
    is_variables: whether a variable refers to it."""
    n_holders = sys.getrefcount(value)
    session: Any = current_session()
    if session is None or not session.is_tracing or not session.sites.is_live:
        return value
    is_known = not isinstance(value, AbstractList)  # an abstract list, the tracer has too
    n_others = n_holders - _N_OF_NEW - is_variables if is_known else 0
    if n_others > 0 and n_others > n_names(sys._getframe(1).f_locals, value):
        return value
    return _born(session, value)


def _n_holders(value: Any, is_variables: bool = False) -> int:
    """The reference count that `born` sees of a value to which nothing else refers."""
    return sys.getrefcount(value)


_N_OF_NEW = _n_holders([])


def live_arguments(session: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A program's arguments as live objects. They are the run's copies, so a run ends with an error
    if the program changes one: the caller would not see the change."""
    if session.given:
        stop("an argument is an object, and data are live objects", INTERPRET)
    return {name: _argument(session, name, value) for name, value in arguments.items()}


@unhooked
def _argument(session: Any, name: str, value: Any) -> Any:
    if isinstance(value, AbstractList):
        return adopted(value)
    if type(value) not in _MUTABLE or asks(value):
        return value
    constant = f"argument_{name}"
    try:
        code = bound_code(session, f"def piece():\n    return {constant}", {constant: value})
    except (NotData, CodeError) as error:
        stop(f"the argument {name!r} is no data: {error}", INTERPRET)
    return session.performed(code, (), (types.LIVE,), is_sure=True, is_whole=True)[0]


@unhooked
def _born(session: Any, value: Any) -> Any:
    if isinstance(value, AbstractList):
        return adopted(value)
    is_one = type(value) in _MUTABLE or (is_record(value) and not is_member(value))
    if not is_one or is_outside(session, value) or asks(value):
        return value
    try:
        made = displayed(session.originals, value, is_live=True)
    except (NotData, CodeError):
        return value  # no code makes such an object, so it stays a Python object
    session.sites.note_classes(made.classes)
    return session.performed(made.code, made.args, (types.LIVE,), is_sure=True, is_whole=True)[0]


def adopted(value: AbstractList) -> AbstractLive:
    """A live copy of data of the graph."""
    code = "def piece(a):\n    return a"
    session: Any = value.session
    found: AbstractLive = session.performed(code, (value,), (types.LIVE,), True, True)[0]
    return found


def asks(value: Any, depth: int = 6) -> bool:
    """Whether a value is or holds a stream, a tool or a program."""
    if issubclass(type(value), _ASKING) or depth == 0:
        return True
    if isinstance(value, dict):
        parts: Any = [*value, *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        parts = value
    elif is_record(value):
        parts = parts_of(value).values()
    else:
        return isinstance(value, FunctionType)
    return any(asks(each, depth - 1) for each in parts)


def listed(kind: str, stars: str, *parts: Any) -> Any:
    """A display of parts, `[*xs, x]`; live if one of the parts with stars is. stars: a star or a
    space for each."""
    pairs = [*zip(stars, parts, strict=True)]
    live = [part for star, part in pairs if star == "*" and type(part) is AbstractLive]
    if not live:
        items = [each for star, part in pairs for each in (part if star == "*" else (part,))]
        return items if kind == "List" else tuple(items) if kind == "Tuple" else set(items)
    names = [f"given_{n}" for n in range(len(parts))]
    inner = "".join(f"{star}{name}, " for star, name in zip(stars, names, strict=True))
    display = {"List": f"[{inner}]", "Tuple": f"({inner})", "Set": f"{{{inner}}}"}[kind]
    code = f"def piece({', '.join(names)}):\n    return {display}"
    return live[0].session.performed(code, parts, (types.LIVE,))[0]


def shown(value: Any) -> Any:
    """`str(value)` of a live object, as a text; any other value as it is."""
    if type(value) is not AbstractLive:
        return value
    code = "def piece(a):\n    return f'{a}'"
    return value.session.performed(code, (value,), (types.TEXT,))[0]


def as_text(value: Any, is_first: bool = False) -> Any:
    """An operand of `+` between appended texts; for a live object that is no text, code raises
    Python's own error."""
    if type(value) is not AbstractLive:
        return value
    expression = "a + ''" if is_first else "'' + a"
    code = f"def piece(a):\n    return {expression}"
    return value.session.performed(code, (value,), (types.TEXT,))[0]
