"""Hoists constants in front of arguments, so that runs share a longer prefix of the prompt.

The prompt changes, so this is never on by default. `movement/` and docs/code_movement.md say what
may move. `sgc opt -p hoist_prefix --show changed` reports what moved and what did not.
"""

from __future__ import annotations

from sgc.ir.graph import Graph
from sgc.passes.base import Pass, Preserves

NAME = "hoist_prefix"


def hoist_prefix(graph: Graph) -> Graph:
    from sgc.passes.changing.movement.move import move  # compiling its patterns takes milliseconds

    return move(graph).graph


def explain(before: Graph, after: Graph) -> tuple[str, ...]:
    from sgc.passes.changing.movement.move import lines, move

    return tuple(lines(move(before)))


DOC = "instructions go in front of the arguments, where they say the same"
PASS = Pass(NAME, Preserves.NOTHING, hoist_prefix, DOC, explain)
