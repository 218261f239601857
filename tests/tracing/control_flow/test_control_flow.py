"""Programs that branch and loop: compiled equals interpreted, and arms join where they should."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from control_flow import BUDGET, agree
from tests_support import results

import sgc
from sgc.errors import TraceError
from sgc.ir.graph import Graph
from sgc.tracing import tracer
from sgc.tracing.paths.exploration import Budget, Report
from sgc.tracing.tracer import trace


def ops(graph: Graph) -> Counter[str]:
    return Counter(node.op for node in graph.nodes())


@sgc.function
def router(s, q: str):
    s += "Q: " + q + "\nkind: " + sgc.select("kind", choices=["math", "chat", "other"])
    if s["kind"] == "math":
        s += "Solve: " + sgc.gen("a", max_tokens=5)
    elif s["kind"] == "chat":
        s += "Chat: " + sgc.gen("a", max_tokens=5)
    else:
        s += "Sorry."
    s += "\nDone: " + sgc.gen("d", max_tokens=3)
    return s["d"]


def test_arms_join_after_the_if_and_impossible_ones_are_not_there():
    graph = agree(router, ["one", "two"], q="x")
    assert ops(graph)["branch"] == 2
    assert ops(graph)["gen"] == 3, "what follows the arms is there once"


@sgc.function
def answered(s, q: str):
    s += q + sgc.select("sure", choices=["yes", "no"])
    if s["sure"] == "yes":
        s += "!" + sgc.gen("x")
    elif s["sure"] == "no":
        s += "?" + sgc.gen("x")
    else:
        raise ValueError("neither")


def test_what_a_chain_has_ruled_out_is_not_asked():
    graph = agree(answered, ["a", "b"], q="x")
    assert ops(graph)["branch"] == 1
    assert not ops(graph)["fail"]


@sgc.function
def counted(s, q: str):
    s += q
    for turn in sgc.turns(4):
        s += f"\nstep {turn}: " + sgc.gen("t", max_tokens=4)
        if s["t"] == "stop":
            break
        s += " more"
    s += "\nend " + sgc.gen("e", max_tokens=2)


def test_turns_fold_into_a_loop():
    graph = agree(counted, ["go", "stop", "on"], q="x", n=20)
    assert ops(graph)["gen"] <= 3, "the first turn, the others, and the end"


@sgc.function
def until(s, q: str):
    s += q
    while True:
        s += "?" + sgc.gen("x", max_tokens=3)
        if s["x"] == "done":
            break
        if s["x"] == "again":
            continue
        s += "!"
    return s["x"]


def test_a_while_loop_without_a_bound():
    graph = agree(until, ["done", "again", "more"], q="x", n=20)
    assert len(graph.blocks) < 12


@sgc.function
def early(s, q: str):
    s += q + sgc.gen("x")
    if s["x"] == "a":
        return "left"
    s += sgc.gen("y")
    if s["y"] == "a" and s["x"] != "b":
        return {"y": s["y"]}
    if s["x"] == "b" or s["y"] == "b":
        s += "b!"
    return [s["x"], s["y"]]


def test_early_returns_and_short_circuits():
    agree(early, ["a", "b", "c"], q="x", n=25)


@sgc.function
def forks(s, q: str):
    s += q + sgc.gen("x")
    if s["x"] == "wide":
        group = s.fork(3)
        for i, f in enumerate(group):
            f += f"{i}:" + sgc.gen("part")
            if f["part"] == "stop":
                f += "."
        group.join()
        s += " ".join(s["part"])
    else:
        with s.copy() as other:
            other += "only" + sgc.gen("alone")
        s += s["alone"][0]
    s += "end" + sgc.gen("z")


def test_forks_inside_arms():
    agree(forks, ["wide", "narrow", "stop"], q="x", n=20)


@sgc.function
def helper(s, word: str):
    s += "say " + word + sgc.gen("said")
    if s["said"] == "no":
        s += " really?" + sgc.gen("again")
        return s["again"]
    return s["said"]


@sgc.function
def caller(s, q: str):
    s += q
    for turn in sgc.turns(3):
        reply = helper(word=q)
        s += reply.ret_value
        if reply["said"] == "yes":
            break
    s += helper(word="end").ret_value


def test_calls_inside_loops_draw_as_interpreted():
    agree(caller, ["yes", "no", "maybe"], q="x", n=20)


@sgc.function
def scopes(s, q: str):
    with s.user():
        s += q + sgc.gen("x")
        if s["x"] == "a":
            s += "A"
    with s.var_scope("part"):
        s += "<" + sgc.gen("y")
        if s["y"] == "a":
            s += sgc.gen("z")
        s += ">"
    s += s["part"]


def test_with_blocks():
    agree(scopes, ["a", "b"], q="x", n=20)


@sgc.function
def unset(s, q: str):
    s += q + sgc.gen("x")
    if s["x"] == "a":
        s += sgc.gen("y")
    s += "then " + s["y"]


def test_a_name_set_in_one_arm_alone():
    agree(unset, ["a", "b"], q="x")


@sgc.function
def raising(s, q: str):
    s += q + sgc.gen("x")
    if s["x"] == "bad":
        raise ValueError(f"found {s['x']}")
    try:
        if s["x"] == "odd":
            raise KeyError("odd")
        s += "fine"
    except KeyError:
        s += "caught" + sgc.gen("y")
    if s["x"] == "worse":
        raise RuntimeError("no")


def test_exceptions_of_the_program():
    agree(raising, ["bad", "odd", "good", "worse"], q="x", n=20)


@sgc.function
def matched(s, q: str):
    s += q + sgc.gen("x")
    match s["x"]:
        case "a" | "b":
            s += "first"
        case "c":
            s += "second" + sgc.gen("more")
        case _:
            s += "other"
    s += sgc.gen("end")


def test_match():
    agree(matched, ["a", "b", "c", "d"], q="x", n=16)


@sgc.function
def nested(s, q: str):
    s += q
    for i in sgc.turns(3):
        s += f"({i}"
        for j in sgc.turns(2):
            s += f"[{j}" + sgc.gen("x")
            if s["x"] == "in":
                break
        else:
            s += "all"
        if s["x"] == "out":
            break
        s += ")"
    return s["x"]


def test_nested_loops_and_else():
    agree(nested, ["in", "out", "no"], q="x", n=25)


@sgc.function
def lists(s, q: str):
    seen = []
    for i in range(3):
        s += q + sgc.gen(f"x{i}")
        if s[f"x{i}"] == "keep":
            seen.append(s[f"x{i}"])
    s += f"{len(seen)}: " + ", ".join(seen)
    return seen


def test_what_a_program_keeps_in_lists_keeps_its_ways_apart():
    agree(lists, ["keep", "drop"], q="x", n=16)


@sgc.function
def flags(s, q: str, is_long: bool):
    s += q
    if is_long and q != "no":
        s += "long" + sgc.gen("x")
    s += "end" + sgc.gen("y")


def test_a_bool_argument_is_a_decision(scripted):
    for is_long in (True, False):
        agree(flags, ["a", "b"], q="x", is_long=is_long)


def diamonds(n: int) -> sgc.Function:
    @sgc.function
    def program(s, q: str):
        s += q
        for i in range(n):
            s += f"{i}?" + sgc.gen(f"x{i}", max_tokens=2)
            if s[f"x{i}"] == "yes":
                s += "!"
            else:
                s += "?" + sgc.gen(f"y{i}")
        s += "done"

    return program


def test_diamonds_in_a_row_are_linear():
    report = Report()
    graph = trace(diamonds(12), budget=BUDGET, is_full=True, report=report)
    assert report.n_runs < 12 * 12
    assert len(graph.blocks) < 12 * 8
    assert ops(graph)["branch"] <= 12  # fewer where turns are one loop
    agree(diamonds(4), ["yes", "no"], q="x")


@pytest.mark.full_budget
def test_a_budget_ends_in_the_interpreter_or_is_an_error():
    @sgc.function
    def wild(s, q: str):
        nested = ()
        for _ in range(12):  # paths that nest it differently do not merge
            s += sgc.gen("x")
            nested = (nested, "a") if s["x"] == "yes" else ("b", nested)
        s += "end" if nested else ""

    graph = trace(wild, budget=Budget(runs=10))
    assert ops(graph)["deopt"] > 0
    with pytest.raises(TraceError, match="has more than 10 paths through the program"):
        trace(wild, budget=Budget(runs=10), is_full=True)


def test_a_loop_that_goes_round_too_often(scripted):
    @sgc.function(max_turns=5)
    def endless(s):
        while True:
            s += sgc.gen("x")
            if s["x"] == "done":
                break

    program = endless.compile(check=False)
    with pytest.raises(sgc.SgcError, match="beyond max_turns=5"):
        program.run(backend=scripted(lambda prompt, sampling: "more"))
    done = program.run(backend=scripted(lambda prompt, sampling: "done"))
    assert results(done)[2] is None


@pytest.mark.slow
def test_what_was_not_compiled_is_interpreted_and_nothing_is_asked_twice(scripted, monkeypatch):
    monkeypatch.setattr(tracer, "Budget", lambda: Budget(runs=30))
    calls = []

    @sgc.tool
    def note(text: str) -> str:
        calls.append(text)
        return text + "!"

    @sgc.function
    def wild(s, q: str):
        words = [note(q)]
        for i in range(10):
            s += sgc.gen(f"x{i}")
            words.append("a" if len(s[f"x{i}"]) % 2 else "b")
        s += "".join(words)
        return s["x9"]

    asked = []
    endpoint = scripted(lambda prompt, sampling: asked.append(1) or "x" * len(asked))
    state = wild(q="hi", backend=endpoint, seed=1)
    assert state.ret_value == "x" * 10
    assert calls == ["hi"]
    assert len(asked) == 10


@sgc.function
def swallows(s, q: str):
    s += q + sgc.gen("x")
    try:
        verdict = json.loads(s["x"])["verdict"]
    except:  # noqa: E722
        verdict = "unknown"
    s += f"Verdict: {verdict}" + sgc.gen("a")


def test_a_bare_except_swallows_what_it_would_when_run():
    agree(swallows, ['{"verdict": "good"}', '{"verdict": 3}', "[]", "none", '{"x": 1}'], q="x")


@sgc.function
def zipped(s, q: str):
    s += q + sgc.gen("x")
    s += "zip" if re.fullmatch(r"[0-9]{5}", s["x"]) else "other"
    s += sgc.gen("y")


def test_a_pattern_is_a_decision():
    agree(zipped, ["12345", "1234", "123456", "zip"], q="x")
