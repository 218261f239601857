"""Pieces of a program: statements and expressions that only compute with data."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from sgc.tracing.code.grouping import as_lists, is_sorted_by
from sgc.tracing.code.trees import Function, Position, Tree, position
from sgc.tracing.pieces.effects.changes import changed_names, method_of, read_by_key
from sgc.tracing.pieces.effects.holds import taken_names
from sgc.tracing.pieces.holes import Hoisting, Holes, Outer, hoisted_of, is_part
from sgc.tracing.pieces.names import names_of
from sgc.tracing.pieces.set_names import (
    looped_over,
    read_elsewhere,
    read_first,
    sure_at,
    surely_read,
    variables_of,
    written_by,
)
from sgc.tracing.pieces.text.function_checks import Changer


@dataclass(frozen=True)
class Piece:
    """A piece, by its place in its file. plain: the node with names for inputs that are not
    variables; inputs: the names of the inputs; given: the expressions of inputs that are not
    variables; hoisted: expressions evaluated before the piece, by name; writes: the names that it
    sets, in order; changes: the inputs that it may change; changers: the program's functions that
    may change their arguments, by name; is_sure: whether the keys of groups have been computed
    before; nonlocals: the changed inputs that are variables of an enclosing function.
    """

    filename: str
    place: Position
    node: ast.stmt | ast.expr
    plain: ast.AST
    inputs: tuple[str, ...]
    given: Mapping[str, ast.expr]
    hoisted: Mapping[str, ast.expr]
    writes: tuple[str, ...]
    changes: frozenset[str]
    changers: frozenset[tuple[str, Changer]] = frozenset()
    is_sure: bool = False
    nonlocals: frozenset[str] = frozenset()

    def __hash__(self) -> int:
        return hash((self.key, self.inputs))

    @cached_property
    def key(self) -> str:
        """The piece's name in converted code."""
        return f"{self.filename}:{':'.join(map(str, self.place))}"

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The names that are set after the piece, including inputs that it may have changed."""
        return (*self.writes, *sorted(self.changes - set(self.writes)))

    @cached_property
    def taken(self) -> frozenset[str]:
        """The names with uses other than by a key, an attribute, a loop, `in` or `+`."""
        return frozenset(taken_names([self.plain]))

    @cached_property
    def rebound(self) -> frozenset[str]:
        """The names that may be bound to another object, not only changed in place."""
        stores = (node for node in ast.walk(self.plain) if not isinstance(node, ast.AugAssign))
        return frozenset(
            child.id
            for node in stores
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
        )

    @cached_property
    def augmented(self) -> frozenset[str]:
        """The names of `x += y`: a new object is bound to them if the old one has a constant
        value, as a date or tuple has."""
        found = (node.target for node in ast.walk(self.plain) if isinstance(node, ast.AugAssign))
        return frozenset(target.id for target in found if isinstance(target, ast.Name))

    @cached_property
    def replaced(self) -> frozenset[str]:
        """The inputs that are variables and may get another value."""
        own = {*self.inputs} - self.given.keys() - self.hoisted.keys()
        return frozenset(self.writes) & own - self.changes if self.is_statement else frozenset()

    @cached_property
    def made_defaulting(self) -> frozenset[str]:
        """The names that are set to a new `defaultdict`."""
        return frozenset(
            name
            for node in ast.walk(self.plain)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            if isinstance(node.value.func, ast.Name) and node.value.func.id == "defaultdict"
            for name in names_of(node.targets).writes
        )

    @property
    def adds_before_hoisted(self) -> bool:
        """Whether Python would add a key to a `defaultdict` before it evaluates what is hoisted."""
        call = self.node.value if isinstance(self.node, ast.Expr) else None
        function = call.func if isinstance(call, ast.Call) else None
        is_method = isinstance(function, ast.Attribute) and is_part(function.value)
        return bool(self.hoisted) and is_method

    @property
    def spares_parts(self) -> bool:
        """Whether the piece only puts the items of a list into another order."""
        call = self.plain.value if isinstance(self.plain, ast.Expr) else None
        function = call.func if isinstance(call, ast.Call) else None
        is_method = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
        return is_method and function.attr in ("reverse", "sort")  # type: ignore[union-attr]

    @property
    def grouping(self) -> ast.Call | None:
        """The call of `groupby` whose groups a loop iterates, if the piece is such a call."""
        made = self.plain if isinstance(self.node, ast.Call) else None
        call = made.generators[0].iter if isinstance(made, ast.ListComp) else None
        return call if isinstance(call, ast.Call) else None

    @property
    def grouped(self) -> str | None:
        """The variable whose list is grouped; the loop must see the list as it is at each turn."""
        call = self.grouping
        over = None if call is None or not call.args else call.args[0]
        return over.id if isinstance(over, ast.Name) and over.id in self.inputs else None

    @property
    def is_statement(self) -> bool:
        return isinstance(self.node, ast.stmt)


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of a file: those that become code, and those that run in Python.

    are_all: whether nothing else is converted; as_values: variables that become values of the graph
    before statements, by the statements' places; live: the file, if its data are live objects;
    are_counted: whether turns of loops are counted, for `max_turns`.
    """

    as_code: frozenset[Piece] = frozenset()
    in_python: frozenset[Piece] = frozenset()
    are_all: bool = False
    as_values: frozenset[tuple[Position, str]] = frozenset()
    live: str = ""
    are_counted: bool = False

    def within(self, has: Callable[[int], bool]) -> Pieces:
        """The pieces whose first line satisfies `has`."""
        return Pieces(
            frozenset(each for each in self.as_code if has(each.place[0])),
            frozenset(each for each in self.in_python if has(each.place[0])),
            self.are_all,
            frozenset(each for each in self.as_values if has(each[0][0])),
            self.live,
            self.are_counted,
        )


NO_PIECES = Pieces()


@lru_cache(maxsize=4096)  # a trace asks for the same pieces again and again
def piece_of(
    node: ast.stmt | ast.expr,
    function: Function,
    outer: Outer,
    tree: Tree,
    filename: str,
    hoisting: Hoisting = Hoisting.NOTHING,
) -> Piece | None:
    """The piece that a node is; None if its inputs or outputs cannot be passed.

    hoisting: which expressions of a statement are evaluated before it.
    """
    # If a hoisted expression fails, a handler would see whether a key was added before.
    is_handled = any(isinstance(each, ast.Try) for each in tree.above(node))
    defaulting = frozenset() if is_handled else outer.defaulting
    holes = Holes(outer, hoisted_of(node, hoisting, outer, defaulting))
    if hoisting is not Hoisting.NOTHING and not holes.n_hoisted:
        return None
    filled = holes.filled(node)
    # A live iterator stays an iterator from turn to turn.
    listed = filled if outer.is_live else _listed(filled, node, function, tree)
    plain = _tested(listed, tree, node)
    place, found = position(node), names_of([plain])
    if place is None or found.outer or found.deletes or not _is_whole(plain):
        return None
    if not isinstance(node, ast.stmt) and found.writes:
        return None  # by `:=`
    made = holes.names
    looped = set(looped_over(node, function, tree))
    local = variables_of(function) | outer.free | made | looped
    sure = {*sure_at(node, function, tree), *surely_read(node)} | outer.free | looped
    sure |= holes.sure(node)
    written = set(written_by([plain]))
    first = set(read_first([plain], set())) & local
    declared = names_of(function.body if isinstance(function.body, list) else []).outer
    writes = found.writes & local
    unsure = writes - sure - written
    if first - sure or writes & (declared | outer.free) or unsure & made:
        return None
    if unsure & read_elsewhere(node, function) or not holes.is_writable(writes):
        return None
    if writes & names_of(holes.given.values()).reads:
        return None
    inputs = first | (writes & sure) - written
    changes = frozenset[str]()
    if not outer.is_live:
        changes = changed_names(plain, inputs, dict(outer.changers))
        changes |= outer.defaulting & read_by_key(plain) & inputs
    if changes and not isinstance(node, ast.stmt):
        return None
    nonlocals = changes & outer.free
    if nonlocals and not isinstance(function, ast.FunctionDef):
        return None
    if not holes.is_writable(changes):
        return None
    is_call = isinstance(node, ast.Call)
    is_sure = is_call and method_of(node) == "groupby" and is_sorted_by(node, tree)  # type: ignore[arg-type]
    return Piece(
        filename, place, node, plain, tuple(sorted(inputs)), holes.given, holes.hoisted,
        tuple(sorted(writes - unsure)), changes, outer.changers, is_sure, nonlocals,
    )  # fmt: skip


def _listed(plain: ast.AST, node: ast.AST, function: Function, tree: Tree) -> ast.AST:
    """The iterable of a loop, as a list if it is an iterator that takes all its items before the
    first turn; any other node unchanged."""
    parent = tree.parents.get(node)
    is_over = isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node
    if not is_over or not isinstance(plain, ast.Call):
        return plain
    if method_of(plain) == "groupby":
        assert isinstance(node, ast.expr)
        return as_lists(plain, node, function, tree) or plain
    if method_of(plain) not in _POOLS:
        return plain
    return ast.copy_location(ast.Call(ast.Name("list", ast.Load()), [plain], []), plain)


def _tested(plain: ast.AST, tree: Tree, node: ast.AST) -> ast.AST:
    """An expression that is only tested, as a bool: it holds no operand and no order of a set."""
    if not isinstance(plain, (ast.BoolOp, ast.BinOp, ast.Call)) or not is_tested(node, tree):
        return plain
    negated = ast.copy_location(ast.UnaryOp(ast.Not(), plain), node)
    return ast.copy_location(ast.UnaryOp(ast.Not(), negated), node)


def is_tested(node: ast.AST, tree: Tree) -> bool:
    """Whether nothing but the truth of an expression is used."""
    parent = tree.parents.get(node)
    while isinstance(parent, ast.BoolOp):
        node, parent = parent, tree.parents.get(parent)
    if isinstance(parent, (ast.If, ast.While, ast.IfExp)):
        return parent.test is node
    is_condition = isinstance(parent, ast.comprehension) and node in parent.ifs
    return is_condition or (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not))


_POOLS = frozenset({"combinations", "combinations_with_replacement", "permutations", "product"})


def _is_whole(node: ast.AST) -> bool:
    """Whether control never leaves a node in the middle: by return, await, or break of an outer
    loop."""
    return not _leaves(node, in_loop=False)


def _leaves(node: ast.AST, in_loop: bool) -> bool:
    if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)):
        return True
    if isinstance(node, (ast.Break, ast.Continue)):
        return not in_loop
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        return False
    if isinstance(node, (ast.For, ast.While)):
        head = [node.target, node.iter] if isinstance(node, ast.For) else [node.test]
        return any(_leaves(each, True) for each in node.body) or any(
            _leaves(each, in_loop) for each in (*head, *node.orelse)
        )
    return any(_leaves(each, in_loop) for each in ast.iter_child_nodes(node))
