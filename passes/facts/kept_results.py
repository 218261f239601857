"""Narrows a program's results: to its main stream and return value, or to that value alone.

This is not a pass of a level: the user chooses (`sgc compile --keep`). It only removes `publish`
nodes; `drop_dead` drops the nodes that only these needed.
"""

from __future__ import annotations

from dataclasses import replace

from sgc.ir.analysis.dependencies import consumed, handed_on
from sgc.ir.graph import Graph, Lit, Node, Receipt, Ref, operand_refs
from sgc.ir.op_specs import Flag
from sgc.passes.base import Preserves
from sgc.passes.facts.calls import program_of
from sgc.passes.rewriting import reached, with_blocks, with_nodes

KEEPS = ("all", "main", "returns")


def keep(graph: Graph, what: str) -> Graph:
    """The program with `all` streams as results, only the `main` one, or only what it `returns`.

    A called program keeps its main stream if a map reads variables or texts of it.
    """
    assert what in KEEPS, what
    if what == "all":
        return graph
    calls = (node for node in graph.all_nodes() if Flag.CALLS in node.flags)
    read = {program_of(node) for node in calls if _reads(node)}
    called = tuple(
        _narrowed(each, is_main_kept=number in read) for number, each in enumerate(graph.called)
    )
    made = replace(_narrowed(graph, is_main_kept=what == "main"), called=called)
    if made == graph:
        return graph
    kept = "no stream" if what == "returns" else "the main stream alone"
    summary = f"{kept} is part of the result"
    receipt = Receipt("keep", Preserves.NOTHING.value, summary, graph.n_nodes, made.n_nodes)
    return replace(made, receipts=(*graph.receipts, receipt))


def _reads(node: Node) -> bool:
    return bool(node.get("names")) or node.get("texts") == Lit(True)


def _narrowed(graph: Graph, is_main_kept: bool) -> Graph:
    main = main_states(graph) if is_main_kept else set()

    def is_kept(node: Node) -> bool:
        return node.op != "publish" or not main.isdisjoint(operand_refs(node.get("stream")))

    return with_blocks(
        graph, (with_nodes(block, filter(is_kept, block.nodes)) for block in graph.blocks)
    )


def main_states(graph: Graph) -> set[str]:
    """The states of the first stream that the program begins."""
    first = next((node for node in graph.nodes() if Flag.EMPTY in node.flags), None)
    if first is None:
        return set()
    after: dict[str, list[str]] = {}
    for param, arg in handed_on(graph):
        if isinstance(arg, Ref):
            after.setdefault(arg.name, []).append(param.name)
    for node in graph.nodes():
        for name in consumed(node):
            after.setdefault(name, []).extend(value.name for value in node.results[:1])
    return reached([first.results[0].name], after)
