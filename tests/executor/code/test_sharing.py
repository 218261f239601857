"""Which values of a run share a list: one that a node made for another alone, until it has it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

import pytest
from tests_support import results

import sgc
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.functions import sharing as sharing_module
from sgc.runtime.executor.functions.sharing import Sharing, key_of
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace


@sgc.function
def program(s, q: str):
    rows = []
    for x in q.split(","):
        rows.append([x])
    return rows


def made() -> tuple[Sharing, Any]:
    """The sharing of a run, and a node whose list one other node alone gets."""
    graph = trace(program)
    sharing = Sharing(graph)
    nodes = [node for node in graph.all_nodes() if node.op == "list"]
    return sharing, next(node for node in nodes if key_of(node) in sharing._used_once)


def test_a_part_of_what_was_pushed_is_held_by_both():
    sharing, node = made()
    inner: list[str] = ["x"]
    sharing.note_display(node, inner)
    rows = [inner]
    sharing.note(rows, [[], inner])
    assert not sharing.has(rows)  # `rows` alone has it
    by_key = {"x": inner}
    sharing.note(by_key, [rows])
    part = [*inner]  # code is given copies
    sharing.note(part, [by_key], {id(part): inner})
    assert sharing.has(part)
    assert sharing.has(by_key)


def test_what_only_looks_at_a_list_does_not_hold_it():
    sharing, node = made()
    inner: list[str] = ["x"]
    sharing.note_display(node, inner)
    sharing.note(1, [inner])
    assert not sharing.has(inner)


@sgc.function
def grouped(s, q: str, wanted: list[str]):
    """Reading a key may change a defaultdict, of which a variable holds a list that is not read
    again."""
    groups = defaultdict(list)
    for word in q.split(","):
        groups[word[:1]].append(word)
    found = []
    for key in wanted:
        words = groups[key]
        s += f"{len(words)} {words[-1]}" + sgc.gen("a", max_tokens=2)
        if s["a"] == "more":
            words = groups["new"]
        found.append(len(words))
    return found, len(groups)


@pytest.mark.parametrize("level", [0, 1])
def test_what_may_change_and_does_not_may_be_shared(level, scripted):
    compiled = Program(optimize(trace(grouped), level))
    arguments = {"q": "ab,b,ac", "wanted": ["a", "b", "a"]}
    for reply in ("no", "more"):
        options, backend = RunOptions(seed=1), scripted(lambda *_, reply=reply: reply)
        found = compiled.run_once(arguments, options, backend)
        assert results(found) == results(grouped.run_once(arguments, options, backend))


def test_work_grows_with_the_turns_of_a_loop_and_not_with_their_square(monkeypatch):
    """What a list holds already is not gone through for each item that it is given or asked for."""

    @sgc.function
    def program(s, rows: list[list[str]]):
        kept = []
        for row in rows:
            if len(row) > 1:
                kept.append([row[0], *row])
        s += f"{len(kept)}"
        return kept

    graph, n_looked_at = program.compile().graph, []

    def looked_at(kind, before=sharing_module.record_of):
        n_looked_at.append(kind)
        return before(kind)

    monkeypatch.setattr(sharing_module, "record_of", looked_at)
    counts = []
    for n in (50, 100, 200):
        del n_looked_at[:]
        rows = [["a", str(i)] for i in range(n)]
        result = asyncio.run(run_graph(graph, ScriptedBackend(lambda *_: ""), {"rows": rows}))
        assert result.ret_value == [["a", *row] for row in rows]
        counts.append(len(n_looked_at))
    assert counts[2] - counts[1] < 2.2 * (counts[1] - counts[0]), counts
