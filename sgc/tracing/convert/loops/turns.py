"""Counts the turns of loops that only `max_turns` bounds: those by `while`, and by `for` over
`itertools.count`, `cycle` or `iter(f, end)`, if they use a stream.

    while test:               n = 0
        …                     while test:
                                  n = turn(n)  # raises TurnsExceeded
                                  …

The interpreter runs this code too, so that a bound means the same there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sgc.tracing.code.operator_names import TURN
from sgc.tracing.convert.live_forms import may_ask, streams_of
from sgc.tracing.convert.loops.looping import assigned, loaded, placed

Loop = ast.While | ast.For
_ENDLESS = frozenset({"count", "cycle"})


def endless(tree: ast.Module) -> list[Loop]:
    """The loops of a tree that only `max_turns` bounds."""
    return [*_endless(tree, frozenset())]


def _endless(node: ast.AST, streams: frozenset[str]) -> Iterator[Loop]:
    if isinstance(node, ast.FunctionDef):
        streams |= streams_of(node)
    if _has_no_end(node) and may_ask(node, streams):
        yield node  # type: ignore[misc]
    for each in ast.iter_child_nodes(node):
        yield from _endless(each, streams)


def _has_no_end(node: ast.AST) -> bool:
    if not isinstance(node, ast.For):
        return isinstance(node, ast.While)
    of = node.iter
    if not isinstance(of, ast.Call):
        return False
    name = of.func.attr if isinstance(of.func, ast.Attribute) else getattr(of.func, "id", "")
    return name in _ENDLESS or (name == "iter" and len(of.args) == 2)


def with_turns(tree: ast.Module, loops: list[Loop]) -> ast.Module:
    """Rewrites these loops of a tree in place, and what is around them."""
    _Counting(loops).visit(tree)
    return tree


class _Counting(ast.NodeTransformer):
    def __init__(self, loops: list[Loop]) -> None:
        self._numbers = {id(loop): n for n, loop in enumerate(loops, 1)}

    def _loop(self, node: Loop) -> list[ast.stmt]:
        self.generic_visit(node)
        number = self._numbers.get(id(node))
        if number is None:
            return [node]
        n = f"__sgc_turns_{number}__"
        call = placed(ast.Call(loaded(TURN, node), [loaded(n, node)], []), node)
        node.body.insert(0, assigned(n, call, node))
        return [assigned(n, placed(ast.Constant(0), node), node), node]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        return self._loop(node)

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        return self._loop(node)
