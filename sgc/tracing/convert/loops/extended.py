"""Rewrites `xs.extend` of a generator expression as a loop, where data are live objects.

    xs.extend(f(y) for y in ys if y)     to = xs
                                         it, extends = ys, extends(to)
                                         if extends:
                                             for u in it:
                                                 if u:
                                                     to.append(f(u))
                                         else:
                                             to.extend(f(y) for y in it if y)

As in Python, each item is there when the next is made, and those before an error stay.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from sgc.tracing.code.operator_names import EXTENDS
from sgc.tracing.convert.loops.looping import COPIED, Names, assigned, is_extending, loaded, placed


class Extending(NamedTuple):
    """A statement that extends a list. made: its generator expression, which goes over `it`; to:
    the variable of the list; before: what sets these; test: whether it is a loop."""

    stmt: ast.Expr | ast.Assign
    call: ast.Call
    made: ast.GeneratorExp
    to: str
    it: str
    test: str
    before: list[ast.stmt]

    def after(self, body: list[ast.stmt] | None) -> list[ast.stmt]:
        """What comes after `before`: this loop, or the statement as it is."""
        call, stmt = self.call, self.stmt
        if body is None:
            return [stmt]
        if isinstance(stmt, ast.Assign):
            nothing = placed(ast.Constant(None), stmt)
            body = [*body, placed(ast.Assign(stmt.targets, nothing), stmt)]
        choice = placed(ast.If(loaded(self.test, call), body, [stmt]), call)
        ended = [
            assigned(each, placed(ast.Constant(None), call), call) for each in (self.to, self.it)
        ]
        return [choice, *ended]


def extending(stmt: ast.stmt, names: Names) -> Extending | None:
    """What a statement has of `xs.extend(… for …)`, if it is that; its parts become variables."""
    is_one = isinstance(stmt, ast.Expr) or (isinstance(stmt, ast.Assign) and _sets_a_name(stmt))
    call = stmt.value if is_one else None  # type: ignore[attr-defined]
    if not names.is_live or not isinstance(call, ast.Call) or not is_extending(call):
        return None
    method, made = call.func, call.args[0]
    if not isinstance(made, ast.GeneratorExp) or hasattr(made, COPIED):
        return None
    to, it, test = names.fresh(), names.fresh(), names.fresh()
    first = made.generators[0]
    asked = placed(ast.Call(loaded(EXTENDS, method), [loaded(to, method)], []), method)
    before = [
        assigned(to, method.value, method.value),  # type: ignore[attr-defined]
        assigned(test, asked, method),
        assigned(it, first.iter, first.iter),
    ]
    method.value = loaded(to, method)  # type: ignore[attr-defined]
    first.iter = loaded(it, first.iter)
    return Extending(stmt, call, made, to, it, test, before)  # type: ignore[arg-type]


def _sets_a_name(stmt: ast.Assign) -> bool:
    return len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name)
