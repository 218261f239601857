"""Rewrites `while` loops whose test goes over items, so that it is a statement of its own:

    while True:
        if any(f(x) for x in xs):
            pass
        else:
            break
        …

What a test needs before it can then be statements, in each turn.
"""

from __future__ import annotations

import ast

from sgc.tracing.convert.loops.looping import placed

_OVER_ITEMS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


def with_while_tests(tree: ast.Module) -> ast.Module:
    """Rewrites the loops of a tree in place; those with an `else` stay, which a `break` skips."""
    for node in ast.walk(tree):
        if isinstance(node, ast.While) and not node.orelse and _goes_over(node.test):
            test = node.test
            go, stop = placed(ast.Pass(), test), placed(ast.Break(), test)
            node.body.insert(0, placed(ast.If(test, [go], [stop]), test))
            node.test = placed(ast.Constant(True), test)
    return tree


def _goes_over(test: ast.expr) -> bool:
    return any(
        isinstance(each, _OVER_ITEMS) or (isinstance(each, ast.keyword) and each.arg == "key")
        for each in ast.walk(test)
    )
