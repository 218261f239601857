"""Parameters that may be None by their annotation, and are None by default: one program for all."""

from __future__ import annotations

import pytest
from control_flow import agree, replying, traced

import sgc
from sgc.errors import ArgumentError, SgcWarning
from sgc.programs.program import Program

POOL = ("a", "b")


@sgc.function
def told(
    s,
    q: str,
    tone: str | None = None,
    turns: int | None = None,
    facts: dict[str, str] | None = None,
    tags: list[str] | None = None,
):
    s += q
    if tone:
        s += f" {tone.upper()}"
    for _ in range(turns or 2):
        s += sgc.gen("a", max_tokens=3)
    for key, value in (facts or {}).items():
        s += key + value
    if tags is not None:
        s += ",".join(tags)
    return tone, turns, len(facts or {}), tags


GIVEN = (
    {}, {"tone": "kind"}, {"tone": "", "turns": 3}, {"facts": {"a": "b"}, "tags": ["u"]},
    {"turns": 0, "tags": []},
)  # fmt: skip


@pytest.mark.slow
def test_one_program_takes_them_with_values_and_without():
    graph = traced(told)
    assert {param.value.name for param in graph.params} == {"q", "tone", "turns", "facts", "tags"}
    for given in GIVEN:
        agree(told, POOL, n=4, graph=graph, q="x", **given)


def test_a_mapped_function_has_its_defaults():
    @sgc.function
    def program(s, q: str):
        states = sgc.map(told, q.split(","))
        s += q + str(states.returns) + (told(q).ret_value[0] or "none")

    agree(program, POOL, n=2, q="x,y")


def test_a_value_of_another_type_is_refused():
    with pytest.raises(ArgumentError, match="tone"):
        Program(traced(told)).run(q="x", tone=3, backend=replying(0, POOL))


def test_where_its_value_decides_how_many_streams_there_are_it_is_fixed():
    @sgc.function
    def program(s, q: str, n: int | None = None):
        forks = s.fork(n or 2)
        forks += q + sgc.gen("a", max_tokens=3)
        return [fork["a"] for fork in forks]

    with pytest.warns(SgcWarning, match="fixed to its default, None"):
        program.compile()
    for n in (None, 3):
        assert len(program.run(q="x", n=n, backend=replying(0, POOL)).ret_value) == (n or 2)
