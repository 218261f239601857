"""The control flow of graphs, against networkx on random ones."""

from __future__ import annotations

import random

import networkx as nx
import pytest

from sgc.ir.analysis.flow import dominators, reached


@pytest.mark.parametrize("seed", range(5))
def test_dominators_and_what_runs_after_are_those_of_networkx(seed):
    rng = random.Random(seed)
    for _ in range(60):
        n = rng.randint(1, 14)
        flow = [sorted({rng.randrange(n) for _ in range(rng.randint(0, 3))}) for _ in range(n)]
        edges = nx.DiGraph((block, each) for block, row in enumerate(flow) for each in row)
        edges.add_nodes_from(range(n))
        above = nx.immediate_dominators(edges, 0)
        assert dominators(flow) == {block: above[block] for block in above if block}
        later = [
            {block for each in row for block in (each, *nx.descendants(edges, each))}
            for row in flow
        ]
        assert [{n for n in range(len(flow)) if bits >> n & 1} for bits in reached(flow)] == later
