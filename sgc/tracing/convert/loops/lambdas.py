"""Names the lambdas of `map` and `filter` where data are live objects, before anything else is
rewritten.

    xs = list(filter(lambda x: f(x), ys))        test = lambda x: f(x)
                                                 xs = list(item for item in ys if test(item))

So a lambda that asks is called in a loop. Where it does not, the run performs the whole statement.
"""

from __future__ import annotations

import ast

from sgc.tracing.code.using_up import USES_UP
from sgc.tracing.convert.loops.looping import DECIDES, SCOPES, assigned, loaded
from sgc.tracing.convert.loops.mapped import NAMES, Mapped
from sgc.tracing.convert.module_names import ModuleNames

_APART = (*SCOPES, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_OVER = USES_UP | DECIDES.keys()
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def with_named_lambdas(tree: ast.Module, names: ModuleNames) -> ast.Module:
    """Rewrites the functions of a tree in place, unless its module binds `map` or `filter`."""
    if "*" in names.bound or NAMES & names.bound:
        return tree
    named = _Named(NAMES, names)
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            node.body = named.block(node.body)
    return tree


class _Named(Mapped):
    """before: what is set before the current statement."""

    before: list[ast.stmt]

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for node in body:
            self.before = []
            for name, value in ast.iter_fields(node) if not isinstance(node, _APART) else ():
                if isinstance(value, ast.expr):
                    setattr(node, name, self.visit(value))
            before = self.before  # a lambda without defaults is the same whenever it is made
            for part in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                self._blocks(part)
            made += [*before, node]
        return made

    def _blocks(self, node: ast.AST) -> None:
        for name in ("body", "orelse", "finalbody"):
            found = getattr(node, name, None)
            if isinstance(found, list) and not isinstance(node, _APART):
                setattr(node, name, self.block(found))

    def visit(self, node: ast.AST) -> ast.AST:
        return node if isinstance(node, _APART) else super().visit(node)  # type: ignore[no-any-return]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        call = self.call(node.args[0]) if len(node.args) == 1 and called in _OVER else None
        function = None if call is None else call.function
        if call is None or not isinstance(function, ast.Lambda) or _has_defaults(function):
            return node
        name = self.fresh("lambda")  # a name that `with_mapped` does not make
        self.before.append(assigned(name, function, function))
        node.args = [self.made(call._replace(function=loaded(name, function)), node.args[0])]
        return node


def _has_defaults(function: ast.Lambda) -> bool:
    return bool(function.args.defaults or any(function.args.kw_defaults))
