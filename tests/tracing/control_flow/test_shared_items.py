"""Lists that grow in a loop and share items with variables and other lists: the graph's list has
copies, so a shared item may not change any more, and is never asked whether it is the very object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from control_flow import agree

import sgc
from sgc.errors import TraceError
from sgc.tracing.paths.exploration import Budget
from sgc.tracing.tracer import trace

REPLIES = ["yes", "no", "a b", "", "the end"]
SMALL = Budget(nodes=600, work=150_000)


@dataclass(frozen=True)
class Beam:
    parts: tuple[str, ...] = ()
    score: float = 0.0


class Player:
    def __init__(self, name: str) -> None:
        self.name = name
        self.points: list[str] = []


def closed(program: Any) -> None:
    graph = trace(program, is_full=True, budget=SMALL)
    for words in (["u"], [f"w{n}" for n in range(5)]):
        agree(program, REPLIES, graph=graph, n=3, words=words)


def test_a_frozen_object_in_a_list_and_in_a_variable():
    @sgc.function
    def program(s, words: list[str]):
        beam, done = Beam(("z",)), []
        for word in words:
            s += word + sgc.gen("x", max_tokens=4)
            done.append(beam)
            if s["x"] == "yes":
                beam = Beam((s["x"],), 1.0)
        s += f"{[each.score for each in done]} {beam.score}" + sgc.gen("z")

    closed(program)


def test_a_list_in_two_lists():
    @sgc.function
    def program(s, words: list[str]):
        rows, kept = [], []
        for word in words:
            s += word + sgc.gen("x", max_tokens=4)
            row = [word, s["x"]]
            rows.append(row)
            if s["x"] == "yes":
                kept.append(row)
        for row in kept:
            s += row[0]
        s += f"{len(rows)} {rows}" + sgc.gen("z")

    closed(program)


@pytest.mark.slow
def test_a_value_out_of_code_in_a_list_and_in_a_variable():
    @sgc.function
    def program(s, words: list[str]):
        notes = []
        for word in words:
            s += word + sgc.gen("x", max_tokens=4)
            parts = {part: len(part) for part in s["x"].split()}
            for _ in range(2):
                s += sgc.gen("y", max_tokens=4)
                if s["y"] == "yes":
                    notes.append((s["y"], parts))
        s += f"{len(notes)} {notes}" + sgc.gen("z")

    closed(program)


def test_objects_in_two_orders_are_changed_through_the_list():
    """The list does not grow: its objects are the same on both paths, which stay apart."""

    @sgc.function
    def program(s, words: list[str]):
        ada, bob = Player("Ada"), Player("Bob")
        s += sgc.gen("x", max_tokens=4)
        order = [ada, bob] if s["x"] == "yes" else [bob, ada]
        for n in range(2):
            for player in order if n % 2 == 0 else reversed(order):
                s += player.name + sgc.gen("y", max_tokens=4)
                player.points.append(s["y"])
        s += f"{ada.points} {bob.points}" + sgc.gen("z")

    closed(program)


def test_lists_of_the_graph_in_two_orders_are_changed_through_the_list():
    @sgc.function
    def program(s, words: list[str]):
        red, blue = [*words, "r"], [*words, "b"]
        s += sgc.gen("x", max_tokens=4)
        order = [red, blue] if s["x"] == "yes" else [blue, red]
        s += sgc.gen("y", max_tokens=4)
        for team in order:
            team.append(s["y"])
        s += f"{red} {blue} {order[0]}" + sgc.gen("z")

    closed(program)


def refused(program: Any) -> str:
    with pytest.raises(TraceError) as stopped:
        trace(program, is_full=True, budget=Budget(work=30_000))
    return str(stopped.value)


def test_a_shared_dict_is_not_changed():
    @sgc.function
    def program(s, words: list[str]):
        rows, row = [], {"w": ""}
        for word in words:
            s += word + sgc.gen("x", max_tokens=4)
            row["w"] = "late"
            row = {"w": s["x"]}
            rows.append(row)
        s += f"{[each['w'] for each in rows]} {row['w']}"

    assert "was changed after it was put into a list" in refused(program)


@pytest.mark.slow
def test_a_shared_list_is_not_changed_through_another_list():
    @sgc.function
    def program(s, words: list[str]):
        rows, kept = [], []
        for word in words:
            s += word + sgc.gen("x", max_tokens=4)
            row = [word, s["x"]]
            rows.append(row)
            if s["x"] == "yes":
                kept.append(row)
        for row in kept:
            row.append("more")
        s += f"{len(rows)} {rows}"

    assert "is changed" in refused(program)


@pytest.mark.sweep
@pytest.mark.parametrize("make", [lambda x: {"w": x}, lambda x: Beam((x,)), lambda x: (x, x)])
def test_whether_an_item_is_the_very_object_is_not_said_wrongly(make: Any):
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=4)
        rows, row = [], make("")
        for word in s["x"].split():
            s += word + sgc.gen("x", max_tokens=4)
            row = make(s["x"])
            rows.append(row)
        s += "same" if rows and rows[-1] is row else "other"
        s += sgc.gen("z", max_tokens=4)

    with pytest.raises(TraceError, match="is the same object"):
        trace(program, is_full=True, budget=Budget(work=40_000))


def test_tuples_of_any_length_stay_tuples():
    """A graph's list of them is no list of JSON, where a tuple is a list and `()` may be `{}`."""

    @sgc.function
    def program(s, words: list[str]):
        found, now = [], ()
        for word in words:
            s += word + sgc.gen("x", max_tokens=4)
            found.append(now)
            now = () if s["x"] == "no" else (word, s["x"]) if s["x"] == "yes" else (word,)
        for each in found:
            s += "t" if isinstance(each, tuple) else "n"
        s += f"{found} {len(found)}" + sgc.gen("z")

    closed(program)


def test_frozen_objects_that_hold_no_items_yet():
    @sgc.function
    def program(s, words: list[str]):
        beam, done = Beam(), []
        for word in words:
            s += word + sgc.gen("x", max_tokens=4)
            done.append(beam if s["x"] == "yes" else Beam((*beam.parts, word), 1.5))
        s += f"{[(each.parts, each.score) for each in done]}" + sgc.gen("z")

    closed(program)
