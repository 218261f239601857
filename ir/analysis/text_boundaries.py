"""The borders between a program's own text and generated text, which `sgc explain` shows.

They are computed from the graph in linear time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sgc.ir.analysis.dependencies import consumed
from sgc.ir.graph import Graph, Lit, Node
from sgc.ir.op_specs import Flag

MAX_TAIL_CHARS = 200


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a prompt that is the same in every run, at most MAX_TAIL_CHARS characters.

    is_cut: whether other text comes directly before it: a run's, or more of the program's own.
    """

    text: str = ""
    is_cut: bool = False

    def extended(self, text: str) -> Tail:
        whole = self.text + text
        return Tail(whole[-MAX_TAIL_CHARS:], self.is_cut or len(whole) > MAX_TAIL_CHARS)


_UNKNOWN = Tail(is_cut=True)


@dataclass(frozen=True, slots=True)
class Border:
    """A generation, and the known end of its prompt."""

    node: Node
    tail: Tail


def borders(graph: Graph) -> Iterator[Border]:
    """Every generation in order."""
    tails: dict[str, Tail] = {}
    for node in graph.nodes():
        parents = consumed(node)
        before = tails.get(parents[0], _UNKNOWN) if parents else _UNKNOWN
        if Flag.GENERATES in node.flags:
            yield Border(node, before)
        after = _after(node, before) if parents else Tail()
        tails.update((value.name, after) for value in node.results if value.type.is_stream)


def _after(node: Node, before: Tail) -> Tail:
    if node.op == "const":
        return before.extended(node.text("text"))
    if node.flags & {Flag.ROLE, Flag.MEDIA}:  # their tokens do not join with other text
        return Tail()
    if Flag.SAME in node.flags:
        return before
    value = node.get("value") if node.op == "append" else None
    if isinstance(value, Lit) and isinstance(value.value, str):
        return before.extended(value.value)
    return _UNKNOWN
