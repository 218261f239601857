"""Hoists constants in front of arguments, so that more of the prompt is the same for all runs.

The prompt changes, so this is never on by default. What may move, and what not: `movement/` and
docs/code_movement.md. `sgc opt -p hoist_prefix --show changed` tells what moved and what stays.
"""

from __future__ import annotations

from sgc.ir.graph import Graph
from sgc.passes.base import Pass, Preserves

NAME = "hoist_prefix"


def hoist_prefix(graph: Graph) -> Graph:
    from sgc.passes.changing.movement.move import move  # its patterns take milliseconds to compile

    return move(graph).graph


def explain(before: Graph, after: Graph) -> tuple[str, ...]:
    from sgc.passes.changing.movement.move import lines, move

    return tuple(lines(move(before)))


DOC = "instructions go in front of the arguments, where they say the same"
PASS = Pass(NAME, Preserves.NOTHING, hoist_prefix, DOC, explain)
