"""Folds constants: adjacent constant texts become one, empty texts are dropped.

Tokens depend only on the joined text, so the prompts and their tokens stay the same. Literals
inside `concat` are folded too. A constant whose own state is read (the start or end of a `span`, a
published state) stays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby

from sgc.ir.graph import Block, Graph, Lit, Node, Operand, Ref
from sgc.passes.base import Pass, Preserves
from sgc.passes.facts.appended import constant_text
from sgc.passes.rewriting import closed, renamed, with_blocks, with_nodes


def fold_constants(graph: Graph) -> Graph:
    uses = Counter(name for node in graph.nodes() for name in node.refs())
    left_out: dict[str, Operand] = {}
    folded = [_folded(block, uses, left_out) for block in graph.blocks]
    names = closed(left_out)
    # Other blocks may have used the states that a block leaves out.
    pairs = zip(graph.blocks, folded, strict=True)
    return with_blocks(
        graph, (with_nodes(block, (renamed(n, names) for n in nodes)) for block, nodes in pairs)
    )


def _folded(block: Block, uses: Counter[str], left_out: dict[str, Operand]) -> list[Node]:
    kept: list[Node | None] = []
    at: dict[str, int] = {}  # value name -> index in `kept` of the const that defines it
    texts: dict[int, list[str]] = {}  # by index in `kept`: the texts that become one const
    for node in block.nodes:
        if node.op == "concat":
            node = _fold_concat(node)
        is_constant = node.op == "const"
        before = _foldable_before(node, kept, at, uses) if is_constant else None
        if before is not None:
            index, previous = before
            # The earlier node is dropped; its line stays, since the text begins on that line.
            parts = texts.pop(index, None) or [previous.text("text")]
            parts.append(node.text("text"))
            texts[len(kept)] = parts
            node = replace(node.with_fields(stream=previous.get("stream")), loc=previous.loc)
            kept[index] = None
        if is_constant:
            at[node.results[0].name] = len(kept)
        kept.append(node)
    for index, parts in texts.items():
        last = kept[index]
        assert last is not None
        kept[index] = last.with_fields(text=Lit("".join(parts)))
    return _drop_empty([node for node in kept if node is not None], left_out)


def _foldable_before(
    node: Node, kept: list[Node | None], at: dict[str, int], uses: Counter[str]
) -> tuple[int, Node] | None:
    """The constant that this one continues, if nothing else uses the state between."""
    stream = node.get("stream")
    assert isinstance(stream, Ref)
    index = at.get(stream.name)
    if index is None or uses[stream.name] != 1:
        return None
    previous = kept[index]
    return None if previous is None else (index, previous)


def _fold_concat(node: Node) -> Node:
    parts: list[Operand] = []
    operands = node.get("parts")
    assert isinstance(operands, tuple)
    for is_text, run in groupby(operands, _is_text):
        held = list(run)
        texts = [str(part.value) for part in held if isinstance(part, Lit)]
        parts += [Lit("".join(texts))] if is_text else held
    return node.with_fields(parts=tuple(parts)) if len(parts) != len(operands) else node


def _is_text(operand: Operand) -> bool:
    return isinstance(operand, Lit) and isinstance(operand.value, str)


def _drop_empty(nodes: list[Node], left_out: dict[str, Operand]) -> list[Node]:
    """Removes constants without text; the state after them is the state before."""
    kept: list[Node] = []
    for node in nodes:
        if constant_text(node) == "":
            before = node.get("stream")
            assert isinstance(before, Ref)
            left_out[node.results[0].name] = left_out.get(before.name, before)
        else:
            kept.append(node)
    return kept


PASS = Pass(
    "fold_constants",
    Preserves.REQUESTS,
    fold_constants,
    "neighbouring constant texts become one",
)
