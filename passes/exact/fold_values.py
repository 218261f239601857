"""Folds values: what is computed from literals alone becomes a literal.

The pass folds concatenations, formats and the few functions used in tests, on literals of one kind;
other functions are left to the executor, which has limits. A computation that would fail is left in
place. Appended texts stay appended values: special tokens are recognised in constants, but not in
values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from sgc.ir.analysis.dependencies import downward
from sgc.ir.graph import Graph, Lit, Node, Operand
from sgc.ir.types import Kind
from sgc.passes.base import Pass, Preserves
from sgc.passes.rewriting import renamed, with_blocks, with_nodes

MAX_CHARS = 100_000  # of one folded text
MAX_ALL_CHARS = 2_000_000  # of all folded texts
MAX_INT = 2**53

# Functions of texts, ints or bools, with all operands of one kind; none of these functions fails.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_NUMBERS: dict[str, Callable[..., Any]] = {"add": operator.add, "sub": operator.sub}
_KINDS = {str: Kind.TEXT, bool: Kind.BOOL, int: Kind.INT}


def fold_values(graph: Graph) -> Graph:
    names: dict[str, Operand] = {}
    blocks = list(graph.blocks)
    n_left = MAX_ALL_CHARS
    for number in downward(graph):  # definitions come before uses
        kept = []
        for node in blocks[number].nodes:
            node = renamed(node, names)
            value = _value(node)
            size = len(value.value) if value is not None and isinstance(value.value, str) else 0
            if value is None or size > n_left:
                kept.append(node)
            else:
                n_left -= size
                names[node.results[0].name] = value
        blocks[number] = with_nodes(blocks[number], kept)
    return with_blocks(graph, blocks) if names else graph


def _value(node: Node) -> Lit | None:
    """The literal that a node evaluates to, if any."""
    made: object = None
    match node.op:
        case "concat":
            made = _text(node.get("parts"))
        case "format":
            made = _formatted(node.get("value"), node.text("spec"))
        case "compute":
            made = _computed(node.text("fn"), node.get("args"))
    is_fit = made is not None and _KINDS.get(type(made)) is node.results[0].type.kind
    return Lit(made) if is_fit else None  # type: ignore[arg-type]


def _text(parts: Operand) -> str | None:
    """Joins texts and integers; other kinds are left to the executor's formatting."""
    assert isinstance(parts, tuple)
    texts = [str(part.value) for part in parts if isinstance(part, Lit) and _is_plain(part.value)]
    made = "".join(texts)
    return made if len(texts) == len(parts) and len(made) <= MAX_CHARS else None


def _is_plain(value: object) -> bool:
    return type(value) is str or (type(value) is int and abs(value) <= MAX_INT)


def _formatted(value: Operand, spec: str) -> str | None:
    if not isinstance(value, Lit) or not _is_plain(value.value) or len(spec) > 4:
        return None
    try:
        return format(value.value, spec)
    except ValueError:
        return None  # the format fails at run time


def _computed(fn: str, args: Operand) -> object:
    assert isinstance(args, tuple)
    values = [arg.value for arg in args if isinstance(arg, Lit)]
    kinds = set(map(type, values))
    if len(values) != len(args) or len(kinds) != 1 or not kinds <= _KINDS.keys():
        return None
    if fn == "not" and kinds == {bool}:
        return not values[0]
    if fn == "int" and kinds == {int} and len(values) == 1:
        return values[0]
    if fn in _NUMBERS and kinds == {int} and all(_is_plain(value) for value in values):
        return _NUMBERS[fn](*values)
    return _FUNCTIONS[fn](*values) if fn in _FUNCTIONS else None


PASS = Pass(
    "fold_values",
    Preserves.REQUESTS,
    fold_values,
    "values computed from literals become literals",
)
