"""Drops streams, generations, pure calls and parameters that no result of the program needs.

The results are the return value, the published streams and the effects of tools (`liveness.py`). A
traced program publishes all of its streams, so `kept_results.py` runs first if fewer are wanted.
Idempotent tools stay: they may be repeated, not left out. Errors that a dropped node could have
raised are not part of the results; `fail` and its message are.

Seeds depend on a stream's path, and a fork's number is part of the path. So a fork is dropped as a
whole only if the stream does not fork again; otherwise only its last children are dropped.
"""

from __future__ import annotations

from dataclasses import replace

from sgc.ir.analysis.dependencies import consumed, handed_on, jump_target
from sgc.ir.graph import Block, Graph, Lit, Node, Operand, Ref
from sgc.passes.base import Pass, Preserves
from sgc.passes.facts.liveness import Liveness
from sgc.passes.rewriting import (
    closed,
    handing_on,
    reached,
    renamed,
    with_blocks,
    with_nodes,
)


def drop_dead(graph: Graph) -> Graph:
    alive = Liveness(graph)
    params = {
        block.name: [param.name in alive.names for param in block.params] for block in graph.blocks
    }
    forks_again = _forking(graph, alive)
    names: dict[str, Operand] = {}
    blocks = [
        _without_params(with_nodes(block, _kept(block, alive, params, forks_again, names)), params)
        for block in graph.blocks
    ]
    if names:
        names = closed(names)
        blocks = [with_nodes(b, (renamed(node, names) for node in b.nodes)) for b in blocks]
    return with_blocks(graph, blocks)


def _without_params(block: Block, params: dict[str, list[bool]]) -> Block:
    is_kept = params[block.name]
    if all(is_kept):
        return block
    kept = (param for param, is_live in zip(block.params, is_kept, strict=True) if is_live)
    return replace(block, params=tuple(kept))


def _kept(
    block: Block,
    alive: Liveness,
    params: dict[str, list[bool]],
    forks_again: set[str],
    names: dict[str, Operand],
) -> list[Node]:
    """The needed nodes. names: gets, for the trunks of dropped forks, the states before them."""
    kept = []
    for node in block.nodes:
        if not alive.is_needed(node):
            continue
        target = jump_target(node)
        if target is not None:
            node = handing_on(node, params[target])
        elif node.op == "fork":
            trunk, *children = [value.name for value in node.results]
            n_live = max((n for n, c in enumerate(children, 1) if c in alive.names), default=0)
            if n_live == 0 and trunk not in forks_again:
                names[trunk] = node.get("stream")
                continue
            node = _with_children(node, max(n_live, 1))
        kept.append(node)
    return kept


def _with_children(fork: Node, n: int) -> Node:
    if n == len(fork.results) - 1:
        return fork
    return replace(fork.with_fields(n=Lit(n)), results=fork.results[: n + 1])


def _forking(graph: Graph, alive: Liveness) -> set[str]:
    """The states whose stream later forks, on some path, into needed children."""
    before: dict[str, list[str]] = {}  # the states that a state continues, in the same stream
    queue: list[str] = []
    for param, arg in handed_on(graph):
        if isinstance(arg, Ref):
            before.setdefault(param.name, []).append(arg.name)
    for node in graph.nodes():
        states = [value.name for value in node.results if value.type.is_stream]
        if states:
            before.setdefault(states[0], []).extend(consumed(node))
        if not alive.names.isdisjoint(states[1:]):
            queue += consumed(node)
    return reached(queue, before)


PASS = Pass(
    "drop_dead",
    Preserves.RESULTS,
    drop_dead,
    "streams, generations and calls that no result needs are dropped",
)
