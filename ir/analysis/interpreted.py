"""What of a program was left to the interpreter, for the commands that tell it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sgc.ir.graph import Graph, Node
from sgc.ir.op_specs import Flag

MAX_LINES = 5  # that are told


@dataclass(frozen=True, slots=True)
class Left:
    """n_ways: that end in the interpreter; lines: of the tests where they part from what was
    compiled; reasons: why. is_all: what was compiled reaches no request.
    """

    n_ways: int
    lines: tuple[str, ...]
    reasons: tuple[str, ...]
    is_all: bool

    def __str__(self) -> str:
        ways = "1 way" if self.n_ways == 1 else f"{self.n_ways} ways"
        n_more = len(self.lines) - MAX_LINES
        lines = ", ".join(self.lines[:MAX_LINES]) + (f" and {n_more} more" if n_more > 0 else "")
        return f"{ways} left to the interpreter at {lines} ({', '.join(self.reasons)})"


def deopts(nodes: Iterable[Node]) -> list[Node]:
    """Those at which the interpreter has to go on."""
    return [node for node in nodes if node.op == "deopt"]


def left_of(graph: Graph) -> Left | None:
    """What of a program was left; None where all of it was compiled."""
    ends = deopts(graph.all_nodes())
    if not ends:
        return None
    asks = any(Flag.STOCHASTIC in node.flags for node in graph.all_nodes())
    lines = sorted({node.loc for node in ends if node.loc is not None}, key=lambda loc: loc.line)
    reasons = sorted({node.text("reason") for node in ends})
    shown = tuple(map(str, lines)) or ("a line unknown",)
    return Left(len(ends), tuple(dict.fromkeys(shown)), tuple(reasons), not asks)
