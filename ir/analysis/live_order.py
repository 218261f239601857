"""The order of code on live objects, and what it waits for.

All of it runs in the program's order, but what makes a new object of data alone.

A list of calls, `[ask(x) for x in xs]`, is made while they run: the op `future` waits for none of
the values that it is given. Code that may read one waits for those of all calls before it.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from sgc.ir.code import parse_code
from sgc.ir.graph import Lit, Node

_READING = frozenset({"ret_value", "get_var"})
_BY_NAME = frozenset({"getattr", "attrgetter", "methodcaller", "itemgetter", "getitem"})


def is_ordered(node: Node) -> bool:
    """Whether a node runs code on live objects, after all such nodes before it."""
    return node.op == "perform" and node.get("is_apart") != Lit(True)


@lru_cache(maxsize=4096)
def reads_futures(code: str) -> bool:
    """Whether code may read a variable of a stream, or what a call has returned."""
    return any(map(_reads, ast.walk(ast.Module(list(parse_code(code).body), []))))


def _reads(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _READING or node.attr in _BY_NAME
    if isinstance(node, ast.Name):
        return node.id in _BY_NAME
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
        return False
    return not isinstance(node.slice, ast.Slice) and not (
        isinstance(node.slice, ast.Constant) and type(node.slice.value) is int
    )
