"""Random programs with more in them for passes to do: bounds, patterns, stops and long texts.

What a random program says is short and plain, so that passes for long prompts and constrained
generations would have nothing to do in it. Here some of its nodes get what they look for.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from sgc.ir.graph import Graph, Lit, Node

RULES = "Be brief. Say what you know, and no more than that. " * 30
# Most scripted replies are of this pattern; it is shorter than the bound beside it.
PATTERN, BOUND = r"[^\x00]{0,80}", 600


def enriched(graph: Graph, seed: int) -> Graph:
    """The same program with richer nodes, those of called programs too."""
    rng = Random(f"enriched {seed}")
    return replace(
        _enriched(graph, rng), called=tuple(_enriched(each, rng) for each in graph.called)
    )


def _enriched(graph: Graph, rng: Random) -> Graph:
    style = rng.choice(("stops", "patterns", "long"))
    blocks = tuple(
        replace(block, nodes=tuple(_richer(node, style, rng) for node in block.nodes))
        for block in graph.blocks
    )
    return replace(graph, blocks=blocks)


def _richer(node: Node, style: str, rng: Random) -> Node:
    given = dict(node.fields)
    if style == "long" and node.op == "const" and rng.random() < 0.5:
        return node.with_fields(text=Lit(RULES + node.text("text")))
    if node.op != "gen" or given.keys() & {"stop", "regex", "dtype", "json_schema", "ebnf"}:
        return node
    if style == "stops":
        return node.with_fields(stop=(Lit("\n"),), max_tokens=Lit(40), temperature=Lit(0.0))
    if style == "patterns" and not given.keys() & {"stop_regex", "logprobs"}:
        return node.with_fields(regex=Lit(PATTERN), max_tokens=Lit(BOUND))
    return node
