"""A breach of a rule, and how it is shown: the rule, the user's line, the nodes around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sgc.ir.analysis.dependencies import Place
from sgc.ir.graph import Graph, Loc, Node
from sgc.ir.text.literals import escape
from sgc.ir.text.printer import loc_text, node_text

# Returns the text of a user's line, if it is known; the verifier opens no file.
SourceLine = Callable[[Loc], str | None]

_MAX_LINE = 100


@dataclass(frozen=True, slots=True)
class Line:
    """A node shown with a breach; the node at fault is marked."""

    node: Node
    note: str = ""
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class Breach:
    """rule: e.g. "R4 linear-stream". loc: the place in the user's source, if known."""

    rule: str
    message: str
    loc: Loc | None = None
    lines: tuple[Line, ...] = ()

    @property
    def headline(self) -> str:
        return f"{self.rule}: {self.message}"

    def render(self, source_line: SourceLine | None = None) -> str:
        """The breach as text: rule and message, the user's line, the nodes; no final newline."""
        text = [self.headline]
        if self.loc is not None:
            source = source_line(self.loc) if source_line else None
            text.append(f"  {loc_text(self.loc)}" + (f":   {source.strip()}" if source else ""))
        return "\n".join(text + _lines_text(self.lines))


def _lines_text(lines: tuple[Line, ...]) -> list[str]:
    shown = [node_text(line.node, _MAX_LINE) for line in lines]
    width = max(map(len, shown), default=0)
    return [
        f"  {'>' if line.is_marked else ' '}   {text:<{width}}   {_note(line)}".rstrip()
        for line, text in zip(lines, shown, strict=True)
    ]


def _note(line: Line) -> str:
    return (
        f"{line.note} ({escape(str(line.node.loc))})" if line.note and line.node.loc else line.note
    )


def breach_at(rule: str, message: str, graph: Graph, place: Place) -> Breach:
    """A breach at a node, shown between its neighbours, or at the head of a block or program."""
    if place.node is None:
        return Breach(rule, message)
    nodes = graph.blocks[place.block].nodes
    shown = range(max(place.index - 1, 0), min(place.index + 2, len(nodes)))
    lines = tuple(Line(nodes[index], is_marked=index == place.index) for index in shown)
    return Breach(rule, message, place.node.loc, lines)


def breach_of_pair(rule: str, message: str, first: Place, second: Place, noun: str) -> Breach:
    """A breach at a node because of an earlier one; both are shown."""
    lines = (first, f"first {noun}", False), (second, f"second {noun}", True)
    shown = tuple(Line(at.node, note, mark) for at, note, mark in lines if at.node is not None)
    return Breach(rule, message, second.node.loc if second.node else None, shown)
