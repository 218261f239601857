"""Rewrites a program whose data are live objects: what computes with data alone is performed by the
run, the largest statement or expression at once.

    total = sum(x["n"] for x in rows)      if is_live(…, rows):
                                               total = live(…, rows)
                                           else:
                                               total = sum(…)

Where a statement appends, asks, or calls what asks, its parts are rewritten so. What is known while
tracing stays so, but lists, dicts and sets that are made, which are live.
"""

from __future__ import annotations

import ast

from sgc.tracing.code.operator_names import (
    AS_TEXT,
    BORN,
    CACHED,
    IS_LIVE,
    KNOWN,
    LIVE,
    SHOWN,
    TEXT,
    UNCACHED,
)
from sgc.tracing.code.trees import Tree, position, tree_of
from sgc.tracing.convert.live_forms import (
    is_cached,
    is_fixed,
    is_known,
    is_looked_up_first,
    is_of_map,
    is_plain,
    is_word,
    may_ask,
    streams_of,
    variables_bound,
)
from sgc.tracing.convert.loops.looping import placed
from sgc.tracing.pieces.live import key_of, live_piece, nodes_of
from sgc.tracing.pieces.names import free_names
from sgc.tracing.pieces.piece import Piece

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Delete, ast.Assert)
_BLOCKS = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match)
_PLAIN = (ast.Name, ast.Constant, ast.Starred, ast.Slice, ast.FormattedValue, ast.Lambda,
          ast.GeneratorExp, ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)  # fmt: skip
_SCOPES = (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp)


def with_live(tree: ast.Module, filename: str) -> ast.Module:
    """Rewrites the functions of a tree in place."""
    whole = tree_of(filename)
    if whole is None:
        return tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body = _Function(node, whole, filename).block(node.body)
    return tree


class _Function:
    """A function that is rewritten. asks: the variables that may be streams, or hold them."""

    def __init__(self, node: ast.FunctionDef, whole: Tree, filename: str) -> None:
        self._node, self._whole, self._filename = node, whole, filename
        self._asks = streams_of(node)

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [each for node in body for each in self._statement(node)]

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.FunctionDef) and is_cached(node) and self._keeps(node):
            return self._cached(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return [node]
        is_one = isinstance(node, (*_SIMPLE, *_BLOCKS)) and not is_known(node)
        piece = self._piece(node) if is_one and not self._may_ask(node) else None
        if piece is not None and not piece.inputs:
            piece = None
        made = isinstance(node, ast.Assign) and isinstance(node.value, _DISPLAYS)
        names = [each.id for each in getattr(node, "targets", ()) if isinstance(each, ast.Name)]
        if made and len(names) == 1 and len(node.targets) == 1 and (piece or self._may_ask(node)):  # type: ignore[attr-defined]
            # As a value that is not whole by itself, it could not become a loop.
            self._parts(node.value)  # type: ignore[attr-defined]
            held = placed(ast.Constant(True), node)
            alive = _call(BORN, node, placed(ast.Name(names[0], ast.Load()), node), held)
            inside = [node, placed(ast.Assign(node.targets, alive), node)]  # type: ignore[attr-defined]
        else:
            inside = [self._inside(node)]
        return inside if piece is None else [_either(piece, key_of(node, self._filename), inside)]

    def _keeps(self, node: ast.FunctionDef) -> bool:
        """Whether the variables around that a function uses are not set again once it is there: a
        live object has them as they are then."""
        used = free_names(node) - {node.name}
        loops = [each for each in ast.walk(self._node) if isinstance(each, (ast.For, ast.While))]
        around = [each for each in loops if any(part is node for part in ast.walk(each))]
        later = [
            each for each in ast.walk(self._node)
            if getattr(each, "lineno", 0) > (node.end_lineno or 0) or isinstance(each, ast.Nonlocal)
        ]  # fmt: skip
        parts = [*later, *(part for each in around for part in ast.walk(each))]
        inside = {id(part) for part in ast.walk(node)}
        bound = {name for each in parts if id(each) not in inside for name in variables_bound(each)}
        return used.isdisjoint(bound)

    def _cached(self, node: ast.FunctionDef) -> list[ast.stmt]:
        """`@cache def f(…): …` as `f = cached(f, cache)` after it: then the function has itself."""
        (decorator,) = node.decorator_list
        node.decorator_list = [placed(ast.Name(UNCACHED, ast.Load()), decorator)]
        name = placed(ast.Name(node.name, ast.Load()), decorator)
        target = placed(ast.Name(node.name, ast.Store()), decorator)
        called = _call(CACHED, decorator, name, decorator)
        return [node, placed(ast.Assign([target], called), decorator)]

    def _piece(self, node: ast.stmt | ast.expr) -> Piece | None:
        place = position(node)
        own = None if place is None else nodes_of(self._whole).get((place, type(node).__name__))
        return None if own is None else live_piece(own, self._whole, self._filename)

    def _may_ask(self, node: ast.AST) -> bool:
        return may_ask(node, self._asks)

    # -- what is inside of a statement --------------------------------------------------------

    def _inside(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.AugAssign) and self._appends(node):
            node.value = self._appended(node.value, is_whole=True)
            return node
        if isinstance(node, ast.Raise) and node.exc is not None:
            self._parts(node.exc)  # Python raises the error itself
            node.exc = _call(KNOWN, node.exc, node.exc)
            return node
        for name, value in ast.iter_fields(node):
            if name == "iter" and is_fixed(value):
                continue
            if isinstance(value, ast.expr) and name not in ("target", "annotation"):
                is_kept = name == "value" and not isinstance(node, ast.Expr)
                is_kept = is_kept and not self._asks.intersection(map(_name_of, _targets_of(node)))
                setattr(node, name, (self._value if is_kept else self._known_first)(value))
            elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self.block(value))
            elif isinstance(value, list) and name != "targets":
                setattr(node, name, [self._part(each) for each in value])
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            self._target(target)
        return node

    def _appends(self, node: ast.AugAssign) -> bool:
        """Whether `x += y` appends to a stream, `self.s += y` if it surely does."""
        if isinstance(node.target, ast.Name):
            return node.target.id in self._asks
        return isinstance(node.op, ast.Add) and any(map(is_word, ast.walk(node.value)))

    def _known_first(self, node: ast.expr) -> ast.expr:
        """An expression whose own arms are no live displays, as of `s.fork(n) if xs else []`."""
        if isinstance(node, ast.IfExp) and self._may_ask(node):
            node.test = self._expression(node.test)
            node.body, node.orelse = map(self._known_first, (node.body, node.orelse))
            return node
        is_empty = isinstance(node, ast.List) and not node.elts
        return node if is_empty else self._expression(node)

    def _part(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr):
            return self._expression(node)
        if isinstance(node, (ast.ExceptHandler, ast.match_case)):
            node.body = self.block(node.body)
        if isinstance(node, ast.match_case) and node.guard is not None:
            node.guard = self._expression(node.guard)
        elif isinstance(node, ast.withitem):
            node.context_expr = self._expression(node.context_expr)
        return node

    def _target(self, node: ast.expr | None) -> None:
        """The parts of `a[b].c = …`."""
        if isinstance(node, (ast.Tuple, ast.List)):
            for each in node.elts:
                self._target(each)
        elif isinstance(node, ast.Subscript):
            node.value = self._expression(node.value)
            node.slice = self._expression(node.slice)
        elif isinstance(node, ast.Attribute):
            node.value = self._expression(node.value)

    def _appended(self, node: ast.expr, is_whole: bool = False, is_first: bool = False) -> ast.expr:
        """What is appended to a stream: its data are texts. is_whole: all of it; is_first: there is
        a text behind it."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and self._may_ask(node):
            node.left = self._appended(node.left, is_first=True)
            node.right = self._appended(node.right)
            return node
        found = self._expression(node)
        if is_whole or isinstance(node, (ast.Constant, ast.JoinedStr)):
            return found
        first = [placed(ast.Constant(True), node)] if is_first else []
        return _call(AS_TEXT, node, found, *first)

    def _value(self, node: ast.expr) -> ast.expr:
        """A value that a statement has; a new list or the like of streams alone is not live."""
        if isinstance(node, ast.Tuple):
            node.elts = [*map(self._value, node.elts)]
            return node
        found = self._expression(node)
        may_be_new = isinstance(node, (*_DISPLAYS, ast.Call, ast.IfExp, ast.BoolOp, ast.BinOp))
        may_be_new = may_be_new or is_of_map(node)
        return _call(BORN, node, found) if may_be_new else found

    def _expression(self, node: ast.expr) -> ast.expr:
        piece = None
        if isinstance(node, ast.NamedExpr):
            node.value = self._expression(node.value)
            return node
        if not isinstance(node, _PLAIN) and not is_known(node) and not self._may_ask(node):
            piece = self._piece(node)
        if piece is None or not (piece.inputs or isinstance(node, _DISPLAYS)):
            self._parts(node)
            return self._made(node)
        key = placed(ast.Constant(key_of(node, self._filename)), node)
        inputs = [placed(ast.Name(name, ast.Load()), node) for name in piece.inputs]
        self._parts(node)
        again = [placed(ast.Name(name, ast.Load()), node) for name in piece.inputs]
        test = _call(IS_LIVE, node, key, *inputs)
        return placed(ast.IfExp(test, _call(LIVE, node, key, *again), self._made(node)), node)

    def _made(self, node: ast.expr) -> ast.expr:
        """An expression that is traced: a list or the like that it makes is live."""
        return _call(BORN, node, node) if isinstance(node, _DISPLAYS) else node

    def _parts(self, node: ast.expr) -> None:
        """Rewrites the parts of an expression that it evaluates in the function's own scope."""
        if isinstance(node, _SCOPES):
            if not isinstance(node, ast.Lambda):
                first = node.generators[0]
                first.iter = self._expression(first.iter)
                self._items(node)
            return
        if isinstance(node, ast.Call) and is_looked_up_first(node):
            # Its arguments become statements before it, which may put another in its place.
            node.func = _call(TEXT, node.func, node.func)
        keeps = isinstance(node, ast.Compare) or is_word(node)
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                is_called = isinstance(node, ast.Call) and name == "func"
                setattr(node, name, self._callee(value) if is_called else self._expression(value))
            elif isinstance(value, list):
                setattr(node, name, [self._item(each, keeps) for each in value])

    def _items(self, node: ast.expr) -> None:
        """The items of a comprehension, of which new lists and the like are live, and its tests."""
        for name in ("key", "elt", "value"):
            if hasattr(node, name):
                setattr(node, name, _alive(self._expression(getattr(node, name))))
        for number, each in enumerate(node.generators):  # type: ignore[attr-defined]
            each.ifs = [*map(self._expression, each.ifs)]
            each.iter = self._expression(each.iter) if number else each.iter

    def _named(self, node: ast.JoinedStr) -> ast.expr:
        """A text that may be a name: what is known of its beginning stays known."""
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                each.value = _call(SHOWN, each.value, self._expression(each.value))
        return node

    def _item(self, node: ast.AST, keeps: bool) -> ast.AST:
        """A part of an expression. keeps: it only looks at lists and the like."""
        if keeps and isinstance(node, ast.JoinedStr) and is_plain(node):
            return self._named(node)
        if isinstance(node, ast.keyword):
            node.value = self._item(node.value, keeps)  # type: ignore[assignment]
        elif isinstance(node, ast.expr) and not (keeps and is_fixed(node)):
            found = self._expression(node)
            is_new = isinstance(node, ast.Call) or is_of_map(node)
            return _call(BORN, node, found) if is_new else found
        return node

    def _callee(self, node: ast.expr) -> ast.expr:
        """A function that is called: of a method, its object."""
        if isinstance(node, ast.Attribute):
            node.value = self._expression(node.value)
            return node
        return node if isinstance(node, ast.Name) else self._expression(node)


def _targets_of(node: ast.stmt) -> list[ast.expr]:
    return [*getattr(node, "targets", ())]


def _name_of(node: ast.expr) -> str:
    return getattr(node, "id", "")


def _alive(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Tuple):
        node.elts = [*map(_alive, node.elts)]
        return node
    held = placed(ast.Constant(True), node)
    return _call(BORN, node, node, held) if isinstance(node, _DISPLAYS) else node


def _either(piece: Piece, key: str, inside: list[ast.stmt]) -> ast.stmt:
    """A statement that is performed, or traced."""
    node = inside[0]
    name = placed(ast.Constant(key), node)

    def inputs() -> list[ast.expr]:
        return [placed(ast.Name(each, ast.Load()), node) for each in piece.inputs]

    call = _call(LIVE, node, name, *inputs())
    targets: list[ast.expr] = [placed(ast.Name(each, ast.Store()), node) for each in piece.writes]
    done: ast.stmt = ast.Expr(call)
    if len(targets) == 1:
        done = ast.Assign(targets, call)
    elif targets:
        done = ast.Assign([placed(ast.Tuple(targets, ast.Store()), node)], call)
    test = _call(IS_LIVE, node, name, *inputs())
    return placed(ast.If(test, [placed(done, node)], inside), node)


def _call(name: str, at: ast.AST, *args: ast.expr) -> ast.Call:
    return placed(ast.Call(placed(ast.Name(name, ast.Load()), at), list(args), []), at)
