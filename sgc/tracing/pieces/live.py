"""Code of pieces that take live objects, not copies of them, and may change them."""

from __future__ import annotations

import ast
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import is_
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from sgc.ir.code import Code, CodeError, parse_code
from sgc.ir.code_names import ADDED
from sgc.lang.definition import Definition
from sgc.lang.tools import Tool
from sgc.tracing.code.trees import Function, Position, Tree, position, source_of, tree_of
from sgc.tracing.kinds.members import is_member
from sgc.tracing.pieces.effects.kept_order import refuse_order_kept
from sgc.tracing.pieces.holes import Outer
from sgc.tracing.pieces.made import refuse_order
from sgc.tracing.pieces.names import free_names, names_of
from sgc.tracing.pieces.owned import is_changeable, is_flat
from sgc.tracing.pieces.piece import Piece, piece_of
from sgc.tracing.pieces.set_names import variables_of
from sgc.tracing.pieces.text.constants import NotData
from sgc.tracing.pieces.text.entry import EntryWriter
from sgc.tracing.pieces.text.function_checks import refuse_defaults, refuse_hidden
from sgc.tracing.pieces.text.functions import named
from sgc.tracing.pieces.text.library import pythons
from sgc.tracing.pieces.text.module_text import ModuleText
from sgc.tracing.values.abstract import AbstractList, is_abstract
from sgc.tracing.values.live.outside import is_outside, outside

_NODES = (ast.stmt, ast.expr)
# The methods of Python's own containers and texts.
OF_PYTHON = frozenset(
    name
    for kind in (list, dict, set, deque, str, tuple, Counter)
    for name in vars(kind)
    if not name.startswith("_")
)


def live_piece(
    node: ast.stmt | ast.expr,
    tree: Tree,
    filename: str,
    streams: frozenset[str] = frozenset(),
    are_set: bool = False,
    attributes: frozenset[tuple[str, str]] = frozenset(),
) -> Piece | None:
    """The piece that a node can be, if its inputs are live. streams: variables that are streams;
    are_set: whether all variables that the node reads of these streams are set."""
    around = tree.above(node)
    functions = [each for each in around if isinstance(each, ast.FunctionDef | ast.Lambda)]
    if not functions:
        return None
    function, *outside = functions
    free = _free(function, outside)
    outer = Outer(free, streams, attributes, is_live=True, are_set=are_set)
    return piece_of(node, function, outer, tree, filename)


def _free(function: Function, around: Sequence[Function]) -> frozenset[str]:
    """The variables of enclosing functions that a function may use."""
    outer = frozenset(name for each in around for name in variables_of(each))
    return outer - frozenset(variables_of(function))


def key_of(node: ast.stmt | ast.expr, filename: str) -> str:
    """The name of a piece in converted code."""
    place = position(node)
    assert place is not None
    return f"{filename}:{':'.join(map(str, place))}:{type(node).__name__}"


@lru_cache(maxsize=4096)
def piece_at(
    key: str,
    streams: frozenset[str] = frozenset(),
    are_set: bool = False,
    attributes: frozenset[tuple[str, str]] = frozenset(),
) -> Piece | None:
    """The piece with this name; see `live_piece`."""
    filename, *place, kind = key.rsplit(":", 5)
    tree = tree_of(filename)
    if tree is None:
        return None
    a, b, c, d = map(int, place)
    node = nodes_of(tree).get(((a, b, c, d), kind))
    return None if node is None else live_piece(node, tree, filename, streams, are_set, attributes)


@lru_cache(maxsize=64)
def nodes_of(tree: Tree) -> Mapping[tuple[Position, str], ast.stmt | ast.expr]:
    """The statements and expressions of a file, by their places and kinds."""
    found: dict[tuple[Position, str], ast.stmt | ast.expr] = {}
    for node in tree.nodes:
        place = position(node) if isinstance(node, _NODES) else None
        if place is not None:
            found.setdefault((place, type(node).__name__), node)  # type: ignore[arg-type]
    return found


@dataclass(frozen=True, slots=True)
class LiveCode:
    """Code and its arguments. lost: the names of sets whose order differs from the program's."""

    code: str
    args: tuple[Any, ...]
    lost: frozenset[str] = frozenset()


def live_code(
    session: Any, piece: Piece, given: Mapping[str, Any], names: dict[str, Any]
) -> LiveCode:
    """The code of a piece for its inputs' values. Raises NotData, CodeError."""
    own, sites = session.originals(names), session.sites
    if not all(map(_is_lone, given.values())):
        return _live_code(session, piece, given, own)
    # Then the text does not depend on the values: it is made once for all runs.
    key, args = (id(piece), id(own), frozenset().union(*sites.asking.values())), (*given.values(),)
    if key not in sites.live_codes:
        try:
            made = _live_code(session, piece, given, own)
        except (NotData, CodeError) as error:
            sites.live_codes[key] = piece, str(error)
            raise
        if len(made.args) != len(args) or not all(map(is_, made.args, args)):
            return made
        sites.live_codes[key] = piece, replace(made, args=())
        return made
    _, kept = sites.live_codes[key]
    if isinstance(kept, str):
        raise NotData(kept)
    assert isinstance(kept, LiveCode)
    return replace(kept, args=args)


def _is_lone(value: Any) -> bool:
    """Whether a value is an argument of code as it is."""
    kind = type(value)
    return kind in _SCALARS or (kind is not AbstractList and is_abstract(value))


_SCALARS = (str, int, float, bool, type(None))


def _live_code(
    session: Any, piece: Piece, given: Mapping[str, Any], own: Mapping[str, Any]
) -> LiveCode:
    found = names_of([piece.plain])
    refuse_hidden(piece.plain)
    for name in sorted({*ADDED} & {*piece.inputs, *found.reads, *found.writes}):
        raise NotData(f"{name} is a reserved name of code")
    writer = _Writer(session, found.reads | found.writes)
    for name, value in given.items():
        writer.take(name, value)
    for name in sorted(found.reads - found.writes - set(piece.inputs)):
        writer.module.need(name, own)
    for name in sorted(found.writes & given.keys()):
        if writer.module.has(name):  # on other paths of the code, it would not be set
            raise NotData(f"{name} is a name of the module, and set")
    writer.module.asking = frozenset().union(*session.sites.asking.values())
    code = writer.whole(piece)
    parsed = parse_code(code)
    refuse_order(piece, parsed, writer.module)
    _refuse_left(parsed)
    session.sites.note_classes(writer.module.classes)
    return LiveCode(code, tuple(writer.args), frozenset(writer.module.lost))


def _refuse_left(code: Code) -> None:
    """Refuses generators with something to do when they are left before their end: Python does it
    when nothing refers to the generator any more, and a run does not know when that is."""
    for part in code.body:
        for node in ast.walk(part):
            is_block = isinstance(node, (ast.Try, ast.With))
            if is_block and any(isinstance(each, _YIELDS) for each in ast.walk(node)):
                raise NotData("a generator waits inside a `try` or `with` block")


_YIELDS = (ast.Yield, ast.YieldFrom)


class _Writer(EntryWriter):
    def __init__(self, session: Any, used: set[str]) -> None:
        super().__init__(ModuleText(session.originals, is_live=True), used)
        self._session = session
        self._taken: dict[str, Any] = {}
        self._inner: list[ast.stmt] = []  # functions that use variables of enclosing functions

    def take(self, name: str, value: Any) -> None:
        refuse_known(self._session, value)
        if name in self._taken:
            if self._taken[name] is not value:
                raise NotData(f"{name} stands for two things")
            return
        self._taken[name] = value
        if type(value) is not tuple and is_changeable(value) and not is_abstract(value):
            way = outside(self._session)[1].get(id(value))
            if way is not None and self._constant(name, way, value):
                return
        cells = _cells(value)
        if cells:
            self._closure(name, value, cells)
        else:
            super().take(name, value)

    def _constant(self, name: str, way: str, value: Any) -> bool:
        """Adds a variable that refers to a module's list, dict or object, or to a part of one.
        Returns False for a part without changeable parts of its own, if the whole holds programs or
        tools: such a part must be written out by itself."""
        root = way.partition("[")[0].partition(".")[0]
        names = outside(self._session)[0]
        if is_flat(value) and _holds_programs(names[root]):
            return False
        if root in self._used and root != name:
            raise NotData(f"{root} stands for two things")
        self.module.bind(root, names[root], self._session.originals(names))
        if way != name:
            self._before.append((name, None, way))
        return True

    def _closure(self, name: str, function: FunctionType, cells: Mapping[str, Any]) -> None:
        """Adds a function of the program with the variables of enclosing functions that it uses, as
        they are now."""
        node = source_of(function)
        if node is None or any(isinstance(each, ast.Nonlocal) for each in ast.walk(node)):
            raise NotData(f"{name} sets a variable of an enclosing function")
        refuse_hidden(node)
        refuse_defaults(node, function)
        for each, cell in cells.items():
            if each in self._used - self._taken.keys():
                raise NotData(f"{each} stands for two things")
            self.take(each, cell)
        names = self._session.originals(function.__globals__)
        for each in sorted(free_names(node) - cells.keys()):
            self.module.need(each, names)
        self._inner.append(named(name, self.module.rewritten(node)))

    def entry_of(self, body: list[ast.stmt]) -> ast.FunctionDef:
        return self._entry(body, ())

    def of_body(self, body: list[ast.stmt]) -> str:
        """The code of these statements, after the functions that use enclosing variables."""
        return self.module.text(ast.fix_missing_locations(self._entry([*self._inner, *body], ())))

    def whole(self, piece: Piece) -> str:
        body = self.module.rewritten(piece.plain).body
        if piece.is_statement:
            names = ", ".join(piece.writes)
            text = names if len(piece.writes) == 1 else f"[{names}]" if names else "None"
            body = [*body, ast.Return(ast.parse(text, mode="eval").body)]
        else:
            (expression,) = body
            body = [ast.Return(expression.value)]
        return self.of_body(body)


def _holds_programs(value: Any, depth: int = 4) -> bool:
    """Whether a module's value is or holds a program or a tool."""
    if isinstance(value, (Definition, Tool)) or not depth:
        return True
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    is_container = isinstance(value, (dict, list, tuple, set, frozenset))
    return is_container and any(_holds_programs(each, depth - 1) for each in parts)


def _cells(value: Any) -> dict[str, Any]:
    """The variables of enclosing functions that a function uses."""
    if not isinstance(value, FunctionType) or is_abstract(value):
        return {}
    pairs = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    try:
        return {name: cell.cell_contents for name, cell in pairs if name != "__class__"}
    except ValueError:
        raise NotData("a variable of an enclosing function is not set") from None


_FIXED = (type, FunctionType, BuiltinFunctionType, ModuleType)


def is_of_graph(value: Any) -> bool:
    """Whether a value is a list or the like of the graph, or a tuple that holds one."""
    if type(value) is tuple:
        return any(map(is_of_graph, value))
    return isinstance(value, AbstractList)


def refuse_known(session: Any, value: Any) -> None:
    """Refuses a changeable value that is known while tracing: code would have a copy of it."""
    if is_abstract(value) or isinstance(value, _FIXED):
        return
    parts = (*value.args, *value.keywords.values()) if type(value) is partial else value
    if type(value) in (tuple, partial):
        for each in parts:
            refuse_known(session, each)
    elif is_changeable(value) and not is_member(value) and not is_outside(session, value):
        raise NotData(f"a {type(value).__name__} is known while tracing")


def call_code(
    session: Any,
    function: str,
    own: tuple[Any, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    of: Any = None,
) -> LiveCode:
    """The code of a call. function: the called expression, of `a` for the object in `own`; of: the
    function that it names. Raises NotData, CodeError."""
    writer = _Writer(session, {"a"})
    for each in own:
        writer.take("a", each)
    if of is not None:
        writer.module.bind(function, of)
    texts = []
    for n, (name, value) in enumerate([*(("", each) for each in args), *kwargs.items()]):
        value = pythons(value) if callable_code(value) else value
        refuse_known(session, value)
        if is_of_graph(value):
            raise NotData("a list of the graph would be a copy")
        text = writer.written(value, f"given_{n}") if not callable_code(value) else ""
        if not text:
            text = value.__name__ if isinstance(value, type) else f"given_{n}"
            writer.module.bind(text, value)
        texts.append(f"{name}={text}" if name else text)
    called = ast.parse(f"{function}({', '.join(texts)})", mode="eval").body
    entry = writer.entry_of([ast.Return(called)])
    code = writer.module.text(ast.fix_missing_locations(entry))
    _refuse_left(parse_code(code))
    session.sites.note_classes(writer.module.classes)
    return LiveCode(code, tuple(writer.args), frozenset(writer.module.lost))


def cached_code(session: Any, function: FunctionType) -> LiveCode:
    """The code of a function whose results are cached, with the variables of enclosing functions
    that it uses. Raises NotData, CodeError."""
    writer, name = _Writer(session, {function.__name__}), function.__name__
    writer.take(name, function)
    body = ast.parse(f"{name} = cached({name}, {name!r})\nreturn {name}").body
    code = writer.of_body(body)
    _refuse_left(parse_code(code))
    session.sites.note_classes(writer.module.classes)
    return LiveCode(code, tuple(writer.args), frozenset(writer.module.lost))


def callable_code(value: Any) -> bool:
    """Whether a value is a function or class of the program that can be code."""
    return isinstance(value, (type, FunctionType, BuiltinFunctionType)) and not is_abstract(value)


def bound_code(session: Any, text: str, names: Mapping[str, Any]) -> str:
    """Code of a function that uses these names. Raises NotData, CodeError."""
    module = ModuleText(session.originals, is_live=True)
    for name, value in names.items():
        module.bind(name, value)
    (entry,) = ast.parse(text).body
    assert isinstance(entry, ast.FunctionDef)
    entry.name = module.free_name(entry.name)
    code = module.text(entry)
    parse_code(code)
    session.sites.note_classes(module.classes)
    return code


def given_code(session: Any, text: str, args: Sequence[Any]) -> LiveCode:
    """Code of a function for these arguments; those known while tracing become constants of the
    code. Raises NotData, CodeError."""
    (entry,) = ast.parse(text).body
    assert isinstance(entry, ast.FunctionDef)
    names = [each.arg for each in entry.args.args]
    inside = {each.id for each in ast.walk(entry) if isinstance(each, ast.Name)}
    writer = _Writer(session, {*names, *inside})
    for name, value in zip(names, args, strict=True):
        if is_of_graph(value):
            raise NotData("a list of the graph would be a copy")
        writer.take(name, value)
    made = writer.entry_of(entry.body)
    code = writer.module.text(ast.fix_missing_locations(made))
    refuse_order_kept(code, frozenset(writer.module.lost), is_kept=True)
    session.sites.note_classes(writer.module.classes)
    return LiveCode(code, tuple(writer.args))
