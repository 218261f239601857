"""What the form of an expression says of how it is rewritten."""

from __future__ import annotations

import ast

from sgc.tracing.code.operator_names import CALLEE, LIVE, METHOD, OPERATORS


def is_quiet(node: ast.expr) -> bool:
    """Whether evaluating an expression calls nothing of the program's."""
    calls = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    named = {getattr(each, "id", "") for each in calls}
    waits = any(isinstance(each, _WAITING) for each in ast.walk(node))
    return not waits and named <= OPERATORS - {LIVE, METHOD, CALLEE}


_WAITING = (ast.Await, ast.NamedExpr, ast.Yield, ast.YieldFrom)


def is_modulo(node: ast.BinOp | ast.AugAssign) -> bool:
    return isinstance(node.op, ast.Mod)


def is_constant(*nodes: ast.expr) -> bool:
    return any(isinstance(each, ast.Constant) for each in nodes)


def is_identity(op: ast.cmpop) -> bool:
    return isinstance(op, (ast.Is, ast.IsNot))


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_spread(node: ast.Call) -> bool:
    """Whether it is `f(**data)`; of a method only if nothing is called between `f` and `data`, as
    its object gets no other name."""
    if node.args or len(node.keywords) != 1 or node.keywords[0].arg is not None:
        return False
    inner = [*ast.walk(node.keywords[0])]
    if isinstance(node.func, (ast.Name, ast.Subscript)):
        return not any(isinstance(each, (ast.Await, ast.Yield, ast.YieldFrom)) for each in inner)
    return not any(isinstance(each, (ast.Call, ast.Await)) for each in inner)


def is_unpacked(node: ast.Call) -> bool:
    """Whether it is `f(x, *xs)` of a named function, in which nothing waits."""
    *before, star = node.args or [node.func]
    if not isinstance(node.func, ast.Name) or node.keywords or not isinstance(star, ast.Starred):
        return False
    inner = [part for each in node.args for part in ast.walk(each)]
    is_one = not any(isinstance(each, ast.Starred) for each in before)
    return is_one and not any(isinstance(each, _WAITING) for each in inner)


def is_literal(key: ast.expr) -> bool:
    """Whether a key is written out, so that Python's own look-up is right."""
    if isinstance(key, ast.UnaryOp):
        return is_literal(key.operand)
    return isinstance(key, (ast.Constant, ast.Tuple))
