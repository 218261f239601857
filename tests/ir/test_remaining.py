"""What is generated from a node to the end of its program, on the longest path."""

from __future__ import annotations

import pytest

import sgc
from sgc.ir.analysis.remaining import TURNS, remaining
from sgc.ir.graph import Graph, Lit, Node
from sgc.ir.op_specs import Flag


def tokens(node: Node) -> float:
    most = node.get("max_tokens") if Flag.GENERATES in node.flags else None
    return float(most.value) if isinstance(most, Lit) else 0.0  # type: ignore[arg-type]


def left(graph: Graph) -> dict[str, float]:
    """By the name of each generation, with its own."""
    after = remaining(graph, tokens).after
    return {
        node.text("name"): tokens(node) + after[node.results[0].name]
        for node in graph.nodes()
        if Flag.GENERATES in node.flags
    }


def compiled(function) -> Graph:
    return function.compile(check=False).graph


@sgc.function
def line(s):
    s += "a" + sgc.gen("x", max_tokens=10) + "b" + sgc.gen("y", max_tokens=20)
    s += "c" + sgc.gen("z", max_tokens=40)


@sgc.function
def judged(s, essay):
    s += essay
    forks = s.fork(3)
    for i, f in enumerate(forks):
        f += f"aspect {i}" + sgc.gen("note", max_tokens=10 * (i + 1))
    forks.join()
    for f in forks:
        s += f["note"]
    s += sgc.gen("verdict", max_tokens=100)


@sgc.function
def beside(s, essay):
    """Nothing waits for the fork's generation."""
    f = s.fork(1)[0]
    f += "aside" + sgc.gen("aside", max_tokens=500)
    s += essay + sgc.gen("verdict", max_tokens=100)


@sgc.function
def branching(s, q):
    s += q + sgc.gen("kind", max_tokens=5)
    if s["kind"] == "long":
        s += sgc.gen("long", max_tokens=200)
    else:
        s += sgc.gen("short", max_tokens=10)
    s += "end" + sgc.gen("last", max_tokens=50)


@sgc.function
def looping(s, q):
    s += q
    for _ in range(30):
        s += "step" + sgc.gen("step", max_tokens=10)
        if "done" in s["step"]:
            break
    s += "end" + sgc.gen("last", max_tokens=50)


def test_a_line() -> None:
    assert left(compiled(line)) == {"x": 70, "y": 60, "z": 40}
    assert remaining(compiled(line), tokens).whole == 70


def test_streams_of_a_fork_wait_for_one_another() -> None:
    graph = compiled(judged)
    by_tokens = {tokens(n): remaining(graph, tokens).after[n.results[0].name] for n in graph.nodes()
                 if Flag.GENERATES in n.flags}  # fmt: skip
    assert by_tokens == {10: 100, 20: 100, 30: 100, 100: 0}
    assert remaining(graph, tokens).whole == 130


def test_what_runs_beside_is_not_behind() -> None:
    assert left(compiled(beside)) == {"aside": 500, "verdict": 100}


def test_of_branches_the_longest_counts() -> None:
    assert left(compiled(branching)) == {"kind": 255, "long": 250, "short": 60, "last": 50}


def test_a_loop_turns_some_times() -> None:
    found = left(compiled(looping))
    assert found["last"] == 50
    assert found["step"] in [10 * n + 50 for n in (TURNS, TURNS + 1)]


@pytest.mark.parametrize("function", [line, judged, beside, branching, looping])
def test_each_node_has_at_least_what_its_users_have(function) -> None:
    graph = compiled(function)
    found = remaining(graph, tokens)
    for block in graph.blocks:
        makers = {value.name: node for node in block.nodes for value in node.results}
        for node in block.nodes:
            if not node.results:
                continue
            whole = tokens(node) + found.after[node.results[0].name]
            for name in node.refs():
                if name in makers:
                    assert found.after[makers[name].results[0].name] >= whole
    assert found.whole >= max(left(graph).values())
