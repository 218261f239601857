"""Writes a prompt down with its pieces in another order.

Between pieces that were neighbours the white space stays; elsewhere it is the widest of what stood
beside them. What begins and ends the prompt stays too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sgc.ir.graph import Graph, Lit, Loc, Node, Ref, Value, make_node
from sgc.ir.types import STREAM
from sgc.passes.changing.movement.pieces import SLOT
from sgc.passes.changing.movement.prompts import Prompt

Order = tuple[int, ...]


def reordered(prompt: Prompt, order: Order) -> str:
    """The new text; its arguments are in their old order."""
    text, pieces = prompt.text, prompt.pieces
    parts = [text[: pieces[0].start]]
    for i, number in enumerate(order):
        parts.append(_gap(prompt, order[i - 1], number) if i else "")
        parts.append(text[pieces[number].start : pieces[number].end])
    return "".join([*parts, text[pieces[-1].end :]])


def _gap(prompt: Prompt, left: int, right: int) -> str:
    def after(number: int) -> str:
        if not 0 <= number < len(prompt.pieces) - 1:
            return ""
        return prompt.text[prompt.pieces[number].end : prompt.pieces[number + 1].start]

    if right == left + 1:
        return after(left)
    # Of a piece that went forward, also what stood in front of it.
    beside = [after(left), after(right - 1), after(left - 1) if left > right else ""]
    return max(beside, key=lambda gap: (gap.count("\n"), len(gap))) or "\n"


def apply(graph: Graph, rewrites: Sequence[tuple[Prompt, Order]]) -> Graph:
    """The program with its prompts rewritten; the same object if there are none."""
    if not rewrites:
        return graph
    taken = {value.name for node in graph.nodes() for value in node.results}
    taken |= {param.value.name for param in graph.params}
    taken |= {value.name for block in graph.blocks for value in block.params}
    blocks = list(graph.blocks)
    for number in {prompt.block for prompt, _ in rewrites}:
        inside = [each for each in rewrites if each[0].block == number]
        gone = {place for prompt, _ in inside for place in prompt.places}
        # By the last of its nodes all that a prompt appends is there.
        made = {prompt.places[-1]: _nodes(prompt, order, taken) for prompt, order in inside}
        nodes: list[Node] = []
        for place, node in enumerate(blocks[number].nodes):
            nodes += made.get(place, ()) if place in gone else (node,)
        blocks[number] = replace(blocks[number], nodes=tuple(nodes))
    return replace(graph, blocks=tuple(blocks))


def _nodes(prompt: Prompt, order: Order, taken: set[str]) -> list[Node]:
    old = prompt.nodes
    parts = [part for part in re.split(f"({SLOT})", reordered(prompt, order)) if part]
    last = old[-1].results[0].name
    names = [node.results[0].name for node in old[:-1]][: len(parts) - 1]
    number = 0
    while len(names) < len(parts) - 1:
        number += 1
        if f"{last}.{number}" not in taken:
            names.append(f"{last}.{number}")
            taken.add(names[-1])
    appends = iter(node for node in old if node.op == "append")
    stream = old[0].get("stream")
    nodes: list[Node] = []
    for part, name in zip(parts, [*names, last], strict=True):
        value = Value(name, STREAM)
        node = next(appends) if part == SLOT else _const(part, value, old)
        nodes.append(replace(node.with_fields(stream=stream), results=(value,)))
        stream = Ref(name)
    return nodes


def _const(text: str, value: Value, old: Sequence[Node]) -> Node:
    return make_node("const", (value,), _loc(text, old), stream=Lit(None), text=Lit(text))


def _loc(text: str, old: Sequence[Node]) -> Loc | None:
    """The line where the first words of a text stood."""
    start = text.strip()[:20]
    holding = [node for node in old if node.op == "const" and start in node.text("text")]
    return (holding or old)[0].loc
