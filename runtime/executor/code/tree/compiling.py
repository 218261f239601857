"""The tables of functions that compile nodes to closures, to which each module of this folder adds
its rows; and the compilation of blocks and modules of statements.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from sgc.ir.code import Import
from sgc.runtime.executor.code.classes.closure import Uses
from sgc.runtime.executor.code.fuel import NotAllowed, Run, spent
from sgc.runtime.executor.code.tree.scopes import UNSET, Frame, Scope, bound_names

Ev = Callable[[Frame], Any]
# The result of a statement: None, `BREAK`, `CONTINUE`, or a tuple with the returned value.
Do = Callable[[Frame], Any]
BREAK, CONTINUE = object(), object()
Row = TypeVar("Row", bound=Callable[..., Any])

_EXPRESSIONS: dict[type[ast.AST], Callable[..., Ev]] = {}
_STATEMENTS: dict[type[ast.AST], Callable[..., Do]] = {}
_WEIGHTS: dict[type[ast.AST], int] = {
    ast.Call: 4, ast.Lambda: 40, ast.FunctionDef: 40, ast.GeneratorExp: 16, ast.List: 2,
    ast.Dict: 4, ast.Set: 5, ast.ListComp: 3, ast.SetComp: 6, ast.DictComp: 4, ast.Tuple: 2,
    ast.Subscript: 2, ast.FormattedValue: 3, ast.Try: 2, ast.Raise: 6, ast.Load: 0, ast.Store: 0,
    ast.Del: 0, ast.ClassDef: 20,
}  # fmt: skip
# Nodes whose bodies are paid for when they run.
_DEFERRED = (ast.FunctionDef, ast.Lambda, ast.GeneratorExp, ast.ClassDef)


class Names:
    """The meaning of code's free names. imports: the code's own; values: those of the evaluator's
    tables; body: the module's statements; uses: which definitions use which; classes: the keys of
    the code's classes.
    """

    def __init__(
        self,
        imports: dict[str, Import],
        values: Callable[[str | None, str], Any],
        body: Sequence[ast.stmt],
    ) -> None:
        self.imports, self.values = imports, values
        self.uses = Uses(body, imports)
        self.classes: dict[str, str] = {}


class Context:
    """A place in the code that is being compiled."""

    __slots__ = ("names", "scope")

    def __init__(self, scope: Scope, names: Names) -> None:
        self.scope, self.names = scope, names


def on_expression(*kinds: type[ast.AST]) -> Callable[[Row], Row]:
    """Adds a function that compiles expressions."""

    def add(function: Row) -> Row:
        _EXPRESSIONS.update(dict.fromkeys(kinds, function))
        return function

    return add


def on_statement(*kinds: type[ast.AST]) -> Callable[[Row], Row]:
    """Adds a function that compiles statements."""

    def add(function: Row) -> Row:
        _STATEMENTS.update(dict.fromkeys(kinds, function))
        return function

    return add


def compile_expression(node: ast.AST, at: Context) -> Ev:
    found = _EXPRESSIONS.get(type(node))
    if found is None:
        raise NotAllowed(f"{type(node).__name__} is not allowed here in a graph's code")
    return found(node, at)


def compile_statement(node: ast.AST, at: Context) -> Do:
    return _STATEMENTS[type(node)](node, at)


def has_yield(node: ast.AST) -> bool:
    """Whether evaluating a node yields."""
    return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in _own(node))


def _own(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, _DEFERRED):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _own(child)


def weight_of(*nodes: ast.AST | None) -> int:
    """The steps of evaluating nodes once."""
    return sum(_weight(node) for node in nodes if node is not None)


def _weight(node: ast.AST) -> int:
    own = _WEIGHTS.get(type(node), 1)
    if isinstance(node, _DEFERRED):
        return own
    return own + sum(_weight(child) for child in ast.iter_child_nodes(node))


_HEADS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.If: ("test",),
    ast.While: (),
    ast.For: ("iter",),
    ast.Try: (),
    ast.Match: ("subject",),
}


def head_weight(node: ast.stmt) -> int:
    """The steps of a statement, without those of the blocks inside it."""
    heads = _HEADS.get(type(node))
    if heads is None:
        return weight_of(node)
    return 2 + weight_of(*(getattr(node, head) for head in heads))


def compile_block(body: Sequence[ast.stmt], at: Context) -> Do:
    """Successive statements, paid for at once; a missing `else` is free."""
    if not body:
        return lambda f: None
    statements = [
        compile_statement(each, at) for each in body if not isinstance(each, ast.Nonlocal)
    ]
    cost = 1 + sum(head_weight(each) for each in body)
    if len(statements) == 1:
        return paid(cost, statements[0])

    def block(f: Frame) -> Any:
        run = f[0]
        run.left -= cost
        if run.left < 0:
            raise spent()
        for statement in statements:
            result = statement(f)
            if result is not None:
                return result
        return None

    return block


def paid(cost: int, do: Ev) -> Ev:
    """A closure that charges `cost` steps before it runs another closure."""

    def pay(f: Frame) -> Any:
        run = f[0]
        run.left -= cost
        if run.left < 0:
            raise spent()
        return do(f)

    return pay


def compile_module(body: Sequence[ast.stmt], names: Names) -> tuple[Scope, Callable[[Run], Frame]]:
    """The scope of a module, and a function that runs its statements and returns its frame."""
    scope = Scope(None)
    for name in bound_names([*body]):
        scope.add(name, False)
    at = Context(scope, names)
    steps: list[Do] = [compile_statement(each, at) for each in body]
    cost = sum(head_weight(each) for each in body)

    def execute(run: Run) -> Frame:
        frame: Frame = [UNSET] * scope.n_slots
        frame[0], frame[1] = run, frame
        run.charge(cost)
        for step in steps:
            step(frame)
        return frame

    return scope, execute
