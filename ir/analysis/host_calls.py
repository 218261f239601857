"""The host's code that a graph runs: tools, and pieces of the program's own source."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sgc.errors import counted
from sgc.ir.graph import Block, Graph, Lit, Node
from sgc.ir.op_specs import Flag
from sgc.ir.ops import ops_with

MAX_SHOWN = 60
MAX_LINES = 5  # lines that are shown


def has_effect(node: Node) -> bool:
    """Whether a node runs code of the host that must run once and in the program's order."""
    if Flag.HOST not in node.flags:
        return False
    return Flag.LOGGED not in node.flags or node.text("effect") != "pure"


def is_early(node: Node) -> bool:
    """Whether a node may run before it is known that the program reaches it."""
    return Flag.LOGGED in node.flags and not has_effect(node)


def pieces_in_python(graph: Graph) -> list[Node]:
    """The nodes that run a piece of the program's source."""
    return [node for node in graph.all_nodes() if _is_piece(node)]


def shown_piece(node: Node) -> str:
    """A piece of the source, for messages: its first line."""
    first, *more = node.text("source").splitlines() or [""]
    return first if len(first) <= MAX_SHOWN and not more else first[:MAX_SHOWN] + "…"


def told_pieces(graph: Graph) -> str:
    """The pieces of the source that a program runs in Python, with their lines; empty if none."""
    found = {(str(node.loc or "a line unknown"), shown_piece(node)): None
             for node in pieces_in_python(graph)}  # fmt: skip
    if not found:
        return ""
    shown = ", ".join(f"{piece} at {where}" for where, piece in [*found][:MAX_LINES])
    n_more = len(found) - MAX_LINES
    more = f" and {n_more} more" if n_more > 0 else ""
    return f"{counted(len(found), 'piece')} in Python: {shown}{more}"


def without_pieces(graph: Graph, known: Collection[tuple[str, str]]) -> Graph:
    """The graph for a host that knows only these pieces, each by name and source: a path that
    reaches another piece is left to the interpreter there."""
    if all(_key(node) in known for node in pieces_in_python(graph)):
        return graph
    called = tuple(without_pieces(each, known) for each in graph.called)
    blocks = tuple(_cut(block, known) for block in graph.blocks)
    return replace(graph, blocks=blocks, called=called)


def _cut(block: Block, known: Collection[tuple[str, str]]) -> Block:
    for n, node in enumerate(block.nodes):
        if _is_piece(node) and _key(node) not in known:
            reason = f"{shown_piece(node)} runs in Python"
            end = Node("deopt", (), (("reason", Lit(reason)),), node.loc)
            return replace(block, nodes=(*block.nodes[:n], end))
    return block


def _is_piece(node: Node) -> bool:
    return node.op in _PIECES


_PIECES = (
    ops_with(Flag.HOST) - ops_with(Flag.LOGGED) - ops_with(Flag.SHOWS)
)  # a set: every node of every run is checked


def _key(node: Node) -> tuple[str, str]:
    return node.text("name"), node.text("source")
