"""Runs of constants and appended values in one block: finds and rewrites them.

The passes that change the order of a prompt's text share this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain, count

from sgc.ir.analysis.dependencies import consumed, definitions
from sgc.ir.graph import Block, Graph, Lit, Node, Ref, Value, make_node
from sgc.ir.types import STREAM
from sgc.passes.facts.appended import appended_value, constant_text
from sgc.passes.rewriting import with_blocks, with_nodes

Run = tuple[Node, ...]


def text_runs(block: Block, n_uses: Mapping[str, int]) -> Iterator[tuple[Run, Node | None]]:
    """Runs of which only the last state is used elsewhere, with the only node that uses it; None
    if several nodes do, or none. n_uses: the uses of each value in the whole program.
    """
    following = {name: node for node in block.nodes for name in consumed(node)}
    seen: set[int] = set()
    for first in block.nodes:
        run: list[Node] = []
        follower: Node | None = first
        while follower is not None and _is_text(follower) and id(follower) not in seen:
            run.append(follower)
            seen.add(id(follower))
            state = follower.results[0].name
            follower = following.get(state) if n_uses[state] == 1 else None
        if run:
            yield tuple(run), follower


def _is_text(node: Node) -> bool:
    return constant_text(node) is not None or appended_value(node) is not None


def with_runs(graph: Graph, rewrites: Iterable[tuple[Run, Sequence[str | Node]]]) -> Graph:
    """The program in which each run appends other parts: texts, and `append` nodes of the run; the
    same object if there are no runs.
    """
    taken = definitions(graph).keys()
    made: dict[int, list[Node]] = {}
    for run, parts in rewrites:
        made |= {id(node): [] for node in run}
        # The new nodes replace the run's last node, where all their operands are defined.
        made[id(run[-1])] = _rewritten(run, parts, taken)
    return with_blocks(
        graph,
        (
            with_nodes(block, (new for node in block.nodes for new in made.get(id(node), [node])))
            for block in graph.blocks
        ),
    )


def _rewritten(run: Run, parts: Sequence[str | Node], taken: Set[str]) -> list[Node]:
    """Nodes between the run's first and last state; they use its names first."""
    *names, last = (node.results[0].name for node in run)
    fresh = (name for number in count(1) if (name := f"{last}.{number}") not in taken)
    given = chain(names[: len(parts) - 1], fresh)
    stream = run[0].get("stream")
    nodes: list[Node] = []
    for number, part in enumerate(parts, start=1):
        name = last if number == len(parts) else next(given)
        node = part if isinstance(part, Node) else _const(part, run)
        nodes.append(replace(node.with_fields(stream=stream), results=(Value(name, STREAM),)))
        stream = Ref(name)
    return nodes


def _const(text: str, run: Run) -> Node:
    """A constant, with the source line on which its first words stood."""
    start = text.strip()[:20]
    loc = next((node.loc for node in run if start in (constant_text(node) or "")), run[0].loc)
    return make_node("const", loc=loc, text=Lit(text))
