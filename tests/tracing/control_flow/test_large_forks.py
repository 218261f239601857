"""Forks into many streams: a loop begins their children, unless the program cannot be traced so."""

from __future__ import annotations

import pytest
from control_flow import agree

import sgc
from sgc.tracing.paths.exploration import Exploration
from sgc.tracing.tracer import trace

POOL = ("yes", "no", "yes, really", "7", "")


def asked(n: int):
    def program(s, q: str):
        s += q
        forks = s.fork(n)
        for fork in forks:
            fork += sgc.gen("said", stop="\n")
            if "yes" in fork["said"]:
                fork += "Why?" + sgc.gen("why")
        forks.join()
        s += sgc.gen("end")

    return sgc.function(program)


@sgc.function
def gathered(s, q: str):
    s += q
    forks = s.fork(24)
    for fork in forks:
        fork += sgc.gen("said", stop="\n")
        if fork["said"] == "yes":
            fork += sgc.gen("why")
    s += ",".join([fork["said"] for fork in forks])


@sgc.function
def in_two_loops(s, q: str):
    s += q
    forks = s.fork(9)
    for fork in forks:
        fork += sgc.gen("said", stop="\n")
    for fork in forks:
        if "yes" in fork["said"]:
            fork += "Why?" + sgc.gen("why")
    s += forks[3]["said"]


def test_their_children_are_a_loop():
    graph = trace(asked(24), is_full=True)
    assert any(node.op == "open_fork" for node in graph.nodes())
    agree(asked(24), POOL, graph=graph, q="x")


@pytest.mark.slow
def test_the_graph_does_not_grow_with_them():
    assert trace(asked(24), is_full=True).n_nodes == trace(asked(100), is_full=True).n_nodes


def test_opening_them_costs_few_steps(monkeypatch):
    """What is explored before they are opened is given up, and must be little."""
    steps = []
    forget = Exploration.forget
    monkeypatch.setattr(Exploration, "forget", lambda self: (steps.append(self.work), forget(self)))
    trace(asked(100), is_full=True)
    assert sum(steps) < 100_000


@pytest.mark.slow
@pytest.mark.parametrize("program", [gathered, in_two_loops], ids=lambda each: each.name)
def test_others_are_explored_child_by_child(program):
    graph = trace(program, is_full=True)
    assert not any(node.op == "open_fork" for node in graph.nodes())
    agree(program, POOL, graph=graph, q="x")
