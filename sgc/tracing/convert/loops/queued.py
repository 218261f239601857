"""Where objects are references, deques that are used as lists could be are lists:

queue = deque([first])            queue = list([first])
task = queue.popleft()            task = popped(queue, 0)
task = queue[-1]                  task = peeked(queue, -1)
queue.appendleft(task)            queue.insert(0, task)
"""

from __future__ import annotations

import ast
from collections.abc import Set

from sgc.tracing.code.modules.deques import is_made, names_in
from sgc.tracing.code.operator_names import PEEKED, POPPED
from sgc.tracing.convert.module_names import ModuleNames

_ENDS = {"popleft": 0, "pop": -1}


def with_queues(tree: ast.Module, names: ModuleNames) -> ast.Module:
    """Rewrites the tree in place."""
    for node in ast.walk(tree) if names.deques else ():
        if isinstance(node, ast.FunctionDef) and (found := names_in(node, names.deques)):
            _Queued(found).generic_visit(node)
    return tree


class _Queued(ast.NodeTransformer):
    def __init__(self, names: Set[str]) -> None:
        self._names = names

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        self._make(node, node.targets[0])
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        self.generic_visit(node)
        self._make(node, node.target)
        return node

    def _make(self, node: ast.Assign | ast.AnnAssign, target: ast.expr) -> None:
        if self._is_one(target) and is_made(node.value):
            node.value.func.id = "list"  # type: ignore[union-attr]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        method = node.func
        if not isinstance(method, ast.Attribute) or not self._is_one(method.value):
            return node
        if method.attr in _ENDS:
            return _call(POPPED, node, method.value, ast.Constant(_ENDS[method.attr]))
        if method.attr == "appendleft":
            method.attr = "insert"
            node.args.insert(0, ast.copy_location(ast.Constant(0), node))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        return _call(PEEKED, node, node.value, node.slice) if self._is_one(node.value) else node

    def _is_one(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self._names


def _call(name: str, at: ast.expr, *args: ast.expr) -> ast.expr:
    given = [ast.copy_location(each, at) for each in args]
    function = ast.copy_location(ast.Name(name, ast.Load()), at)
    return ast.copy_location(ast.Call(function, given, []), at)
