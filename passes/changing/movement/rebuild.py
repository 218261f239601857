"""Writes a prompt with its pieces in another order.

White space between former neighbours stays; elsewhere it is the widest white space that stood
beside the pieces. White space at the prompt's start and end stays too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import chain, count, islice

from sgc.ir.analysis.dependencies import definitions
from sgc.ir.graph import Graph, Lit, Node, Ref, Value, make_node
from sgc.ir.types import STREAM
from sgc.passes.changing.movement.pieces import SLOT
from sgc.passes.changing.movement.prompts import Prompt
from sgc.passes.facts.appended import constant_text
from sgc.passes.rewriting import with_blocks, with_nodes

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
    # For a piece that moved forward, also the gap before it.
    beside = [after(left), after(right - 1), after(left - 1) if left > right else ""]
    return max(beside, key=lambda gap: (gap.count("\n"), len(gap))) or "\n"


def apply(graph: Graph, rewrites: Sequence[tuple[Prompt, Order]]) -> Graph:
    """The program with its prompts rewritten; the same object if there are none."""
    taken = definitions(graph).keys()
    made: dict[int, list[Node]] = {id(node): [] for prompt, _ in rewrites for node in prompt.nodes}
    # The new nodes replace the last one of a prompt, where all its operands are defined.
    made |= {id(prompt.nodes[-1]): _nodes(prompt, order, taken) for prompt, order in rewrites}
    return with_blocks(
        graph,
        (
            with_nodes(block, (new for node in block.nodes for new in made.get(id(node), [node])))
            for block in graph.blocks
        ),
    )


def _nodes(prompt: Prompt, order: Order, taken: Set[str]) -> list[Node]:
    parts = [part for part in re.split(f"({SLOT})", reordered(prompt, order)) if part]
    names = [node.results[0].name for node in prompt.nodes]
    last = names.pop()
    fresh = (name for number in count(1) if (name := f"{last}.{number}") not in taken)
    appends = (node for node in prompt.nodes if constant_text(node) is None)
    stream = prompt.nodes[0].get("stream")
    nodes: list[Node] = []
    for part, name in zip(parts, [*islice(chain(names, fresh), len(parts) - 1), last], strict=True):
        node = next(appends) if part == SLOT else _const(part, prompt.nodes)
        nodes.append(replace(node.with_fields(stream=stream), results=(Value(name, STREAM),)))
        stream = Ref(name)
    return nodes


def _const(text: str, old: Sequence[Node]) -> Node:
    """A constant, with the source line where its first words stood."""
    start = text.strip()[:20]
    loc = next((node.loc for node in old if start in (constant_text(node) or "")), old[0].loc)
    return make_node("const", loc=loc, text=Lit(text))
