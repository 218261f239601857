"""Pieces that are found in later runs: the runs before them stand, if they go together."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests_support import one_in

import sgc
from sgc.tracing import tracer
from sgc.tracing.paths.exploration import UNMERGED, Budget, Exploration, Report
from sgc.tracing.tracer import trace


def fields_of(text: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        found[key.strip()] = value.strip()
    return found


@sgc.function
def in_many_arms(s, q: str):
    s += q + sgc.gen("a")
    if s["a"] == "yes":
        s += str(sorted(fields_of(s["a"])))
    s += sgc.gen("b")
    if s["b"] == "yes":
        s += json.dumps([int(c) for c in s["b"] if c.isdigit()])
    elif s["b"] == "no":
        s += "-".join(reversed(s["b"].split()))
    s += sgc.gen("c")
    if s["c"] == "no":
        s += f"{ {w: len(w) for w in s['c'].split()} }"


@sgc.function
def in_a_loop(s, q: str):
    notes = []
    for _ in sgc.turns(3):
        s += q + sgc.gen("a")
        if s["a"] == "stop":
            break
        notes.append(s["a"].strip())
        if len(notes) > 1 and s["a"] == notes[0]:
            s += ", ".join(sorted(set(notes)))
    s += str(fields_of("\n".join(notes)))


@pytest.mark.parametrize("program", one_in(2, [in_many_arms, in_a_loop]))
def test_the_graph_is_the_one_that_a_trace_begun_anew_gives(program, monkeypatch):
    taken = []

    def taking(self, mark, before=Exploration.take_back):
        taken.append(before(self, mark))
        return taken[-1]

    monkeypatch.setattr(Exploration, "take_back", taking)
    graph = trace(program, is_full=True)
    assert any(taken)
    monkeypatch.setattr(Exploration, "take_back", lambda *_: False)
    assert trace(program, is_full=True) == graph


def test_a_run_that_is_taken_back_is_as_if_it_had_not_been():
    first, again = Report(), Report()
    trace(in_many_arms, is_full=True, report=first)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Exploration, "take_back", lambda *_: False)
        trace(in_many_arms, is_full=True, report=again)
    assert (first.n_runs, first.work) == (again.n_runs, again.work)


def test_runs_that_do_not_go_with_those_after_a_piece_are_made_anew(monkeypatch):
    """Where the second trace, which begins with all pieces, gives another graph, it is right."""
    graph, n_verified = trace(in_many_arms, is_full=True), []

    def verified(trace, budget, is_full, report, is_first=True, before=tracer._verified):
        found = before(trace, budget, is_full, report, is_first)
        n_verified.append(is_first)
        return replace(found, name="other") if is_first else found

    monkeypatch.setattr(tracer, "_verified", verified)
    assert trace(in_many_arms, is_full=True) == graph
    assert n_verified == [True, False]


@pytest.mark.parametrize("waits", [True, False])
def test_a_path_that_does_not_merge_is_not_followed_for_long_if_pieces_wait(waits):
    explored = Exploration(Budget(), may_resume=True, has_waiting=lambda: waits)
    explored.n_nodes = UNMERGED + 1
    explored.begin([])
    assert not explored.spent()  # those are of other runs
    explored.n_nodes += UNMERGED + 1
    assert bool(explored.spent()) == explored.is_hasty == waits
