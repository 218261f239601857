"""Definitions, uses, dependencies and the tree of prompts."""

from __future__ import annotations

import golden_files
import networkx as nx
from random_graphs import random_graph

from sgc.ir.analysis.dependencies import definitions, dependencies, prompt_tree, uses
from sgc.ir.text.parser import parse

TIPS = parse(golden_files.read("text_tips"))


def test_definitions_and_uses() -> None:
    where = definitions(TIPS)
    assert where["topic"].place.node is None
    assert where["c1"].place.node is where["s3"].place.node
    used = [place.node.op for place in uses(TIPS)["grade"] if place.node]
    assert used == ["publish", "return"]
    assert "c2" not in uses(TIPS)


def test_dependencies() -> None:
    dag = dependencies(TIPS)
    ops = [node.op for node in TIPS.nodes()]
    fork, line = ops.index("fork"), ops.index("concat")
    assert sorted(dag.successors(fork)) == [fork + 1, fork + 2, line + 1]
    assert dag.edges[fork + 1, line]["values"] == ["tip_1"]
    assert nx.is_directed_acyclic_graph(dag)
    assert dag.nodes[fork]["node"].op == "fork"


def test_prompt_tree() -> None:
    tree = prompt_tree(TIPS)
    assert tree.roots == ("s0",)
    assert tree.children["s2"] == ["s3", "c0", "c1"]
    assert tree.path("c3") == ["s0", "s1", "s2", "c1", "c3"]
    assert tree.is_at_or_above("s1", "s5")
    assert tree.is_at_or_above("s1", "s1")
    assert not tree.is_at_or_above("s3", "c2")
    assert not tree.is_at_or_above("s5", "s1")
    assert not tree.is_at_or_above("topic", "s1")


def test_prompt_tree_of_a_cycle_leaves_it_out() -> None:
    tree = prompt_tree(parse(golden_files.read("cycle")))
    assert tree.roots == ()
    assert "a" not in tree
    assert tree.path("a") == ["a"]


def test_random_trees_agree_with_their_paths() -> None:
    for seed in range(100):
        tree = prompt_tree(random_graph(seed, n_nodes=20))
        names = [name for name in definitions(random_graph(seed, n_nodes=20)) if name in tree]
        for lower in names:
            above = {name for name in names if tree.is_at_or_above(name, lower)}
            assert above == set(tree.path(lower))
