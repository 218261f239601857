"""The order of code on live objects, and the values that it waits for.

All such code runs in the program's order, except code that only makes a new object from data.

A list of calls, `[ask(x) for x in xs]`, is made while the calls run: the op `future` waits for none
of its values. Code that may read one of them waits for the values of all calls before it.
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
    """Whether code may read a variable of a stream, or the return value of a call."""
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
