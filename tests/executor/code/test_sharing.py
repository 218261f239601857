"""Which values of a run share a list: one that a node made for another alone, until it has it."""

from __future__ import annotations

from typing import Any

import pytest

import sgc
from sgc.errors import ProgramError
from sgc.runtime.executor.functions.sharing import Sharing, key_of
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
    sharing.check(rows)  # `rows` alone has it
    by_key = {"x": inner}
    sharing.note(by_key, [rows])
    part = [*inner]  # code is given copies
    sharing.note(part, [by_key], {id(part): inner})
    for value in (part, by_key):
        with pytest.raises(ProgramError, match="another value holds"):
            sharing.check(value)


def test_what_only_looks_at_a_list_does_not_hold_it():
    sharing, node = made()
    inner: list[str] = ["x"]
    sharing.note_display(node, inner)
    sharing.note(1, [inner])
    sharing.check(inner)
