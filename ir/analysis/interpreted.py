"""The paths of a program that were left to the interpreter, for commands that report them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sgc.errors import counted
from sgc.ir.analysis.host_calls import pieces_in_python
from sgc.ir.graph import Graph, Node
from sgc.ir.op_specs import Flag

MAX_LINES = 5  # that are shown


@dataclass(frozen=True, slots=True)
class Left:
    """The paths that were not compiled.

    n_ways: the number of paths that end in the interpreter; lines: the lines of the tests at which
    they leave the compiled paths; reasons: why they do. is_all: whether the compiled part makes no
    request.
    """

    n_ways: int
    lines: tuple[str, ...]
    reasons: tuple[str, ...]
    is_all: bool

    def __str__(self) -> str:
        n_more = len(self.lines) - MAX_LINES
        lines = ", ".join(self.lines[:MAX_LINES]) + (f" and {n_more} more" if n_more > 0 else "")
        ways = counted(self.n_ways, "way")
        return f"{ways} left to the interpreter at {lines} ({', '.join(self.reasons)})"


def deopts(nodes: Iterable[Node]) -> list[Node]:
    """The nodes at which the interpreter continues."""
    return [node for node in nodes if node.op == "deopt"]


def may_leave(graph: Graph) -> bool:
    """Whether a run may have to continue in the interpreter: a path was left to the interpreter, or
    a piece of the source runs in Python, and the run may lack the source."""
    return bool(deopts(graph.all_nodes()) or pieces_in_python(graph))


def left_of(graph: Graph) -> Left | None:
    """The paths of a program that were not compiled; None if all were."""
    ends = deopts(graph.all_nodes())
    if not ends:
        return None
    asks = any(Flag.STOCHASTIC in node.flags for node in graph.all_nodes())
    lines = sorted({node.loc for node in ends if node.loc is not None}, key=lambda loc: loc.line)
    reasons = sorted({node.text("reason") for node in ends})
    shown = tuple(map(str, lines)) or ("a line unknown",)
    return Left(len(ends), tuple(dict.fromkeys(shown)), tuple(reasons), not asks)
