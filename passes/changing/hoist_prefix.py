"""Hoists constants in front of arguments, so that runs share a longer prefix of the prompt.

The prompt changes, so the pass is never on by default. docs/code_movement.md says what may move.
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


DOC = "instructions move in front of the arguments if their meaning stays the same"
PASS = Pass(NAME, Preserves.NOTHING, hoist_prefix, DOC, explain)
