"""Tightens `max_tokens` to the most that a text under a pattern can need: a token per byte, plus 1.

Every token of a text has at least one byte, so a text of n bytes has at most n tokens; one more
lets the text end by itself. This holds for `regex` and `dtype=bool`; the length of a JSON schema's
texts depends on the backend's layout.

The pass is in no level, because a run may need more tokens than the text has, and the program does
not show this. A provider's reasoning model counts its reasoning, a run's `heal` counts regenerated
tokens, and a run's `min_tokens` must not exceed `max_tokens`. The pass is for programs that run on
our engine without these; generations with such fields of their own are left alone.
"""

from __future__ import annotations

from sgc.ir.graph import Graph, Lit, Node
from sgc.ir.op_specs import Flag
from sgc.passes.base import Pass, Preserves
from sgc.passes.facts.pattern_length import longest
from sgc.passes.rewriting import with_blocks, with_nodes

_LONGER = ("heal", "min_tokens", "ignore_eos")  # more tokens than the text has
_BOOL_BYTES = len("False")


def tighten_max_tokens(graph: Graph) -> Graph:
    return with_blocks(
        graph, (with_nodes(block, map(_tightened, block.nodes)) for block in graph.blocks)
    )


def _tightened(node: Node) -> Node:
    if Flag.GENERATES not in node.flags or any(node.get(name) != Lit(None) for name in _LONGER):
        return node
    given, n_bytes = _literal(node, "max_tokens"), _longest(node)
    if type(given) is not int or n_bytes is None or n_bytes + 1 >= given:
        return node
    return node.with_fields(max_tokens=Lit(n_bytes + 1))


def _longest(node: Node) -> int | None:
    if _literal(node, "dtype") == "bool":
        return _BOOL_BYTES
    regex = _literal(node, "regex")
    return longest(regex) if isinstance(regex, str) else None


def _literal(node: Node, name: str) -> object:
    operand = node.get(name)
    return operand.value if isinstance(operand, Lit) else None


PASS = Pass(
    "tighten_max_tokens",
    Preserves.RESULTS,
    tighten_max_tokens,
    "max_tokens is no more than what the pattern's longest text needs",
)
