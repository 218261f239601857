"""Chooses the piece of a program that becomes code, after a trace has stopped in it."""

from __future__ import annotations

import ast
import itertools
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import FrameType, TracebackType
from typing import Any

from sgc.core.places import is_users, is_users_own
from sgc.core.session import Stream
from sgc.core.watching import unhooked
from sgc.ir.code import CodeError
from sgc.tracing.code.trees import (
    Function,
    Position,
    Tree,
    at,
    covers,
    function_of,
    place_in,
    position,
    renamed_in,
    statement_at,
    tree_of,
)
from sgc.tracing.pieces.effects.changes import may_change
from sgc.tracing.pieces.holes import LAZY, Hoisting, Outer
from sgc.tracing.pieces.in_python import InPython, MakesFunction, in_python, may_be_in_python
from sgc.tracing.pieces.known import MAKING, known_objects
from sgc.tracing.pieces.made import made_again
from sgc.tracing.pieces.owned import given_away, live_after
from sgc.tracing.pieces.piece import Piece, piece_of
from sgc.tracing.pieces.text.constants import LostOrder, NotData
from sgc.tracing.pieces.text.function_checks import Changer
from sgc.tracing.snapshots.objects import is_programs
from sgc.tracing.values.abstract import AbstractObject, OfTexts, is_abstract
from sgc.tracing.values.open_fork import EndedChild
from sgc.tracing.values.recorder import Recorder

_NO_PIECE = (
    ast.Slice,
    ast.Starred,
    ast.FormattedValue,
    ast.FunctionDef,
    ast.ClassDef,
    ast.GeneratorExp,
)
_LOAD = ast.Load()
_SCOPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


Places = Iterable[tuple[FrameType, int]]  # frames, outermost first, with their offsets


def stopped_at(traceback: TracebackType | None) -> Places:
    """The places in an error's traceback."""
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lasti
        traceback = traceback.tb_next


def now_at(root: FrameType | None) -> Places:
    """The places of the running frames inside `root`."""
    found: list[tuple[FrameType, int]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not root:
        found.append((frame, frame.f_lasti))
        frame = frame.f_back
    return reversed(found)


# Objects from which a piece reads values by name, as inputs of its code.
_STREAMS = (Stream, EndedChild)
_STREAMS_AND_MATCHES = (*_STREAMS, OfTexts)


@unhooked
def chosen(session: Recorder, places: Places) -> Piece | None:
    """The largest piece around a place, in the outermost function that has one. If there is none,
    the search is repeated with groups of matches as inputs."""
    users = [(frame, offset) for frame, offset in places if is_users(frame)]
    for is_read in (_STREAMS, _STREAMS_AND_MATCHES):
        for frame, offset in users:
            found = _in_frame(session, frame, offset, is_read=is_read)
            if found is not None:
                return found
    return None


@unhooked
def chosen_in_python(session: Recorder, places: Places, made: MakesFunction) -> InPython | None:
    """The largest piece around a place that can run in Python, in the innermost of the program's
    own functions: the functions that it calls are a library's."""
    for frame, offset in reversed([*places]):
        if is_users_own(frame.f_code, frame.f_globals):
            found = _in_frame(session, frame, offset, _may_be_in_python)
            names = session.originals(frame.f_globals)
            return None if found is None else in_python(found, names, made)
    return None


def _may_be_in_python(session: Recorder, piece: Piece, frame: FrameType, given: list[Any]) -> bool:
    known = session.sites.in_python
    if piece.key in known.refused or piece.key in known.found:
        return False
    return may_be_in_python(piece, session.originals(frame.f_globals), given)


@unhooked
def growing(session: Recorder, frame: FrameType) -> Piece | None:
    """The current statement as a piece, if it changes a known dict, set or deque. Such a container
    differs in each turn, so a loop around the statement never merges.
    """
    tree = tree_of(frame.f_code.co_filename)
    function = None if tree is None else function_of(frame.f_code, tree)
    node = None if tree is None or function is None else statement_at(frame.f_lineno, function)
    if tree is None or function is None or node is None or _appends(node, frame):
        return None
    if not may_change(node, _changers(session, node, frame)):
        return None
    found = _possible(session, frame, frame.f_locals, node, function, tree, None)
    if found is None:
        return None
    values = (_value(found, name, frame.f_locals, frame) for name in found.changes)
    is_grown = any(type(value) in _GROWN for value in values)
    sites = session.sites
    is_taken = found.key in sites.pieces or found.key in sites.refused
    return found if is_grown and not is_taken else None


def _appends(node: ast.stmt, frame: FrameType) -> bool:
    """Whether a statement appends to a stream, as most statements do; it is never a piece."""
    target = node.target if isinstance(node, ast.AugAssign) else None
    return isinstance(target, ast.Name) and isinstance(frame.f_locals.get(target.id), _STREAMS)


_GROWN = (dict, set, deque, Counter, defaultdict, OrderedDict)


Fits = Callable[[Recorder, Piece, FrameType, list[Any]], bool]


def _as_code(session: Recorder, piece: Piece, frame: FrameType, given: list[Any]) -> bool:
    """Whether a piece can be code that is data."""
    inputs = dict(zip(piece.inputs, given, strict=True))
    live = live_after(frame.f_code, piece.place) if piece.changes else ()
    away = given_away(piece, inputs, frame, live)
    inputs.clear()  # references to the inputs are counted
    try:
        made_again(session.sites, session.originals, piece, given, frame.f_globals, away)
    except LostOrder:
        session.sites.has_lost_order = True
        return False
    except (NotData, CodeError):
        return False
    return True


def _in_frame(
    session: Recorder,
    frame: FrameType,
    offset: int,
    fits: Fits = _as_code,
    is_read: tuple[type, ...] = _STREAMS,
) -> Piece | None:
    code = frame.f_code
    tree = tree_of(code.co_filename)
    function = None if tree is None else function_of(code, tree)
    place = None if tree is None else place_in(code, offset, tree)
    if tree is None or function is None or place is None:
        return None
    found: Piece | None = None
    is_joined = False  # into a text, whose known parts must stay known
    innermost = at(place, tree)
    values = _variables(frame, innermost, function, tree)
    if is_read is not _STREAMS and not any(isinstance(each, OfTexts) for each in values.values()):
        return None
    for node in _around(innermost, function, tree, is_loop=values is not frame.f_locals):
        is_joined = is_joined or _joins(node)
        if is_read is not _STREAMS and isinstance(node, ast.stmt):
            break  # as a whole statement, it would hide parts that can be traced
        if not is_joined or isinstance(node, ast.stmt):
            larger = _possible(session, frame, values, node, function, tree, place, fits, is_read)
            found = found if larger is None or larger.key in session.sites.refused else larger
    return None if found is None or found.key in session.sites.pieces else found


def _possible(
    session: Recorder,
    frame: FrameType,
    values: Mapping[str, Any],
    node: ast.stmt | ast.expr,
    function: Function,
    tree: Tree,
    place: Position | None,
    fits: Fits = _as_code,
    is_read: tuple[type, ...] = _STREAMS,
) -> Piece | None:
    """The piece that a node can be, with its inner expressions or with them hoisted."""
    code = frame.f_code
    streams = frozenset(name for name, value in values.items() if isinstance(value, is_read))
    attributes = ((name, each) for name, value in values.items() for each in data_of(value))
    defaulting = frozenset(name for name, each in values.items() if may_add_keys(session, each))
    changers = frozenset(_changers(session, node, frame).items())
    free = frozenset(code.co_freevars)
    names = session.originals(frame.f_globals)
    objects = known_objects(node, values, names)
    own = MAKING.intersection({*values, *names}) if objects else frozenset[str]()
    outer = Outer(free, streams, frozenset(attributes), defaulting, changers, objects, own)
    is_inside = any(isinstance(each, _SCOPES) for each in tree.above(node))
    may_take = "list" not in values and "list" not in frame.f_globals and not is_inside
    for hoisting in Hoisting:
        if hoisting is Hoisting.COMPREHENSIONS and not may_take:
            continue
        if hoisting is Hoisting.KNOWN and (is_inside or not objects):
            continue
        piece = piece_of(node, function, outer, tree, code.co_filename, hoisting)
        if piece is None or not piece.inputs:
            continue
        if _is_possible(session, piece, frame, values, place, fits):
            return piece
    return None


def _changers(session: Recorder, node: ast.AST, frame: FrameType) -> dict[str, Changer]:
    """The functions of the frame's module that a node calls, directly or indirectly, and that may
    change their arguments."""
    code, names = frame.f_code, session.originals(frame.f_globals)
    found: dict[str, Changer] = session.sites.changers.called(node, code, names, session.originals)
    return found


def _is_no_piece(node: ast.AST) -> bool:
    """Whether a node has no value, or a lazy value, which is not data."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in LAZY
    return isinstance(node, _NO_PIECE)


def _is_of_keywords(parent: ast.AST | None) -> bool:
    """Whether a node is passed as keyword arguments, `**d`, whose names Python needs."""
    return isinstance(parent, ast.keyword) and parent.arg is None


def _joins(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
    )


def _variables(
    frame: FrameType, node: ast.AST | None, function: Function, tree: Tree
) -> Mapping[str, Any]:
    """A frame's variables; inside a comprehension that runs as a loop, also the loop's."""
    above = () if node is None else _within(node, function, tree)
    place = next((position(each) for each in above if isinstance(each, _SCOPES)), None)
    renamed = {} if place is None else renamed_in(frame.f_code, place)
    if not renamed or not {*renamed.values()} <= {*frame.f_locals}:
        return frame.f_locals
    return frame.f_locals | {name: frame.f_locals[own] for name, own in renamed.items()}


def _around(
    node: ast.AST | None, function: Function, tree: Tree, is_loop: bool
) -> Iterator[ast.stmt | ast.expr]:
    """The nodes around a node in its function, innermost first; a comprehension only as a whole,
    unless it runs as a loop, and no pattern, which computes nothing.
    """
    if node is not None:
        patterns = (each for each in _within(node, function, tree) if isinstance(each, ast.pattern))
        for pattern in patterns:
            node = tree.parents.get(pattern)
    while node is not None and node is not function:
        inside = [*_scopes_around(node, function, tree)]
        if len(inside) > is_loop:
            node = inside[-1]
        is_part = isinstance(node, (ast.stmt, ast.expr)) and not _is_no_piece(node)
        is_part = is_part and not _is_of_keywords(tree.parents.get(node))
        if is_part and isinstance(getattr(node, "ctx", _LOAD), ast.Load):
            yield node  # type: ignore[misc]
        node = tree.parents.get(node)


def _scopes_around(node: ast.AST, function: Function, tree: Tree) -> Iterator[ast.AST]:
    """The comprehensions and lambdas that contain a node; the iterable of a comprehension's first
    `for` is outside of the comprehension."""
    first: ast.AST | None = None  # a comprehension's first `for`, if the node is in its iterable
    below = node
    for each in _within(node, function, tree):
        if isinstance(each, _SCOPES) and not (first is not None and _first_of(each) is first):
            yield each
        is_over = isinstance(each, ast.comprehension) and below is each.iter
        first = each if is_over else None
        below = each


def _first_of(scope: ast.AST) -> ast.AST | None:
    generators = getattr(scope, "generators", None)
    return generators[0] if generators else None


def _within(node: ast.AST, function: Function, tree: Tree) -> Iterator[ast.AST]:
    return itertools.takewhile(lambda each: each is not function, tree.above(node))


def _is_possible(
    session: Recorder,
    piece: Piece,
    frame: FrameType,
    values: Mapping[str, Any],
    place: Position | None,
    fits: Fits,
) -> bool:
    if place is not None and any(covers(node, place) for node in piece.hoisted.values()):
        return False
    try:
        given = [_value(piece, name, values, frame) for name in piece.inputs]
    except KeyError:
        return False
    return fits(session, piece, frame, given)


def _value(piece: Piece, name: str, values: Mapping[str, Any], frame: FrameType) -> Any:
    """The value of a piece's input, as far as it is known before the piece runs."""
    node = piece.given.get(name)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return vars(values[node.value.id])[node.attr]
    if name in piece.hoisted or node is not None:
        return ""  # any text stands for it: reading a stream here would have effects
    if name not in values and _is_validation_error(name, frame):
        return ""  # the name of an `except` is not set any more; checked where the piece runs
    return values[name]


def _is_validation_error(name: str, frame: FrameType) -> bool:
    """Whether a name may stand for pydantic's error, the only error that code takes."""
    tree = tree_of(frame.f_code.co_filename)
    handlers = () if tree is None else tree.parents
    return any(
        isinstance(each, ast.ExceptHandler)
        and each.name == name
        and each.type is not None
        and "ValidationError" in ast.unparse(each.type)
        for each in handlers
    )


def may_add_keys(session: Recorder, value: Any) -> bool:
    """Whether a value may be a `defaultdict`, to which reading a key may add it."""
    if isinstance(value, AbstractObject):
        return value.symbol.name in session.defaulting
    return type(value) is defaultdict


def data_of(value: Any) -> frozenset[str]:
    """The data attributes of a user's object, which Python gets and sets without calling methods of
    the object's class."""
    kind = type(value)
    if isinstance(value, Stream) or is_abstract(value) or not is_programs(kind):
        return frozenset()
    if any(getattr(kind, name) is not getattr(object, name) for name in _ASKED):
        return frozenset()
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return frozenset()
    return frozenset(name for name in own if not hasattr(kind, name) or name in _plain_of(kind))


_ASKED = ("__setattr__", "__getattribute__")


def _plain_of(kind: type) -> Collection[str]:
    """The class attributes that are data, such as defaults of fields."""
    return [
        name
        for each in kind.__mro__
        for name, value in vars(each).items()
        if not hasattr(type(value), "__get__")
    ]
