"""Loops: where they close, what grows in them, and when a run would not end."""

from __future__ import annotations

from functools import partial

import pytest
from control_flow import agree
from tests_support import one_in

import sgc
from sgc.tracing import trace as trace_module
from sgc.tracing.paths.exploration import BUILT, Budget, Report
from sgc.tracing.pieces.made import Sites
from sgc.tracing.tracer import trace

YES_NO = ["yes", "no"]


def plus(a, b):
    return a + b


def test_a_loop_after_a_comprehension_over_turns():
    @sgc.function
    def program(s, q: str):
        s += q
        first = next(i for i in sgc.turns(2))
        for _ in range(3):
            s += sgc.gen("x")
            if s["x"] == "yes":
                s += "!"
        s += f"{first}" + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_chains_walruses_and_guards():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        if 1 < (n := len(s["x"])) < 4:
            s += f"short {n}"
        match s["x"]:
            case "a" | "ab" if len(q) > 3:
                s += "never"
            case word if len(word) > 2:
                s += "long"
            case _:
                s += "else"
        words = ("b", "ab") if s["x"] in ("a", "abc") else ("c",)
        s += words[0] + ("L" if s["x"] in words else "R") + sgc.gen("z")

    agree(program, ["a", "ab", "abc", "abcd"], q="x", n=20)


def test_the_order_of_a_dict():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        found = {}
        if s["x"] == "yes":
            found["a"] = 1
            found["b"] = 2
        else:
            found["b"] = 2
            found["a"] = 1
        s += "then"
        s += ",".join(found) + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_decisions_inside_expressions():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        s += f"<{'L' if s['x'] == 'yes' else 'R'}>" + sgc.gen("y")
        s += plus("l" if s["y"] == "yes" else "r", q)
        words = [w for w in ("a", "yes", "b") if s["y"] == w or w == "b"]
        s += "".join(words) + sgc.gen("z")

    agree(program, YES_NO, q="x", n=20)


def test_a_loop_whose_body_is_long():
    @sgc.function
    def program(s, q: str):
        s += q
        for _ in range(3):
            s += sgc.gen("x")
            if s["x"] == "yes":
                s += "!"
            s += s["x"] + "0" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "1" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "2" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "3" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "4" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "5" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "6" + s["x"] + s["x"] + s["x"]
            s += s["x"] + "7" + s["x"] + s["x"] + s["x"]
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


@pytest.mark.slow
def test_two_comprehensions_in_one_function():
    """From 3.12 on they are in the code of their function, and save its variables on the stack."""

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=4)
        x = "kept"
        lengths = {x: [len(y) for y in x] for x in (s["a"].split(","), [q])[0:1][0]}
        s += "and" + sgc.gen("b", max_tokens=4)
        words = [x + y for x in lengths for y in (s["b"], x)]
        if s["b"] == "yes":
            s += ", ".join(words)
        return x, [x for x in words], {x for x in lengths}

    agree(program, ("yes", "no", "a,b", ""), q="x")


@pytest.mark.slow
def test_a_run_that_would_not_end():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        nested = ()
        while s["x"] != "yes":
            nested = (nested, s["x"])
            s += sgc.gen("x")
        s += f"{nested}"

    graph = trace(program, budget=Budget(nodes=200))
    assert any(node.op == "deopt" for node in graph.nodes())


def test_a_way_that_knows_more_closes_its_loop():
    """It comes to a statement where a way that knows less has been, which it does not fit."""

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("a")
        if len(s["a"]) > 2:
            word = s["a"]
        else:
            s += "how many" + sgc.gen("b", regex="[0-9]+", max_tokens=3)
            word = s["b"]
        for _ in sgc.turns(2):
            s += "pick" + sgc.select("c", choices=["yes", "no"])
        s += word

    report = Report()
    trace(program, report=report, is_full=True)
    assert report.n_runs < 10
    agree(program, ("yes", "no", "7", "12"), q="ab")


def test_what_grows_in_a_loop_is_work():
    """Each turn goes over all that has grown, so a few nodes may cost as much as ever so many."""

    @sgc.function
    def grows(s, q: str):
        nested = ()
        for _ in sgc.turns(3):
            s += q + sgc.gen("x")
            nested = (nested, s["x"], "a", "b", "c", "d", "e")
        s += nested[1]

    report = Report()
    graph = trace(grows, budget=Budget(work=50_000), report=report)
    assert "steps of tracing" in report.deopt
    assert graph.n_nodes * BUILT < 0.8 * report.work
    assert report.work < 80_000


@pytest.mark.slow
def test_what_is_around_an_inner_loop_is_widened_before_the_loop_is_explored(monkeypatch):
    """Else the inner loops are explored once more for each state of the outer one."""

    @sgc.function
    def program(s, words: list[str], need: list[str]):
        said, counts = [], {"a": 0, "b": 0}
        for word in words:
            s += word + sgc.gen("x", max_tokens=3)
            missing = [each for each in need if each not in said]
            if not missing:
                break
            for each in missing:
                if each == s["x"]:
                    counts["a"] += 1
                elif each == word:
                    counts["b"] += 1
            said.append(s["x"])
        return [counts["a"], counts["b"], said]

    agree(program, YES_NO, words=["yes", "b", "no"], need=["yes", "no", "b"])
    nearest_first, latest_first = Report(), Report()
    trace(program, budget=Budget(), report=nearest_first, is_full=True)
    monkeypatch.setattr(trace_module, "Sites", partial(Sites, is_nearest_first=False))
    trace(program, budget=Budget(), report=latest_first, is_full=True)
    assert nearest_first.work < 0.75 * latest_first.work  # how many they are depends on the Python


def test_a_while_with_a_call_in_its_condition():
    def more(s):
        s += sgc.gen("x")
        return s["x"] != "yes"

    @sgc.function
    def program(s, q: str):
        s += q
        while more(s):
            s += "again"
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


@sgc.function
def interview(s, who: str):
    said = []
    for question in ("when", "where"):
        s += question + who + sgc.gen("x", max_tokens=4)
        said.append(s["x"])
    return said


def test_a_comprehension_on_one_line_that_calls_is_a_loop_from_its_first_turn():
    @sgc.function
    def program(s, names: list[str]):
        said = {name: interview(name).ret_value for name in names}
        s += "; ".join(f"{name}: {' '.join(words)}" for name, words in said.items())
        s += sgc.gen("z", max_tokens=2)
        return len(said)

    graph = agree(program, YES_NO, names=["a", "b", "c"])
    assert graph.n_nodes < 150


@pytest.mark.parametrize("is_growing", one_in(2, [True, False]))
def test_a_known_number_of_turns_without_tests_is_a_loop_once_it_is_long(is_growing):
    def of(n_turns):
        @sgc.function
        def program(s, q: str):
            notes = []
            s += q
            for turn in range(n_turns):
                s += f"{turn}. " + sgc.gen("note", stop="\n")
                if is_growing:
                    notes.append(s["note"].strip())
            s += ", ".join(notes)

        return program

    assert len({trace(of(n), is_full=True).n_nodes for n in (50, 400)}) == 1
    assert len(trace(of(4), is_full=True).blocks) == 1  # a short one is a straight line
    agree(of(40), YES_NO, q="x", n=4)
