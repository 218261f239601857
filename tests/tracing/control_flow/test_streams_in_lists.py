"""Streams that lists hold: of calls and forks in loops whose length is known only at run time."""

from __future__ import annotations

from typing import Any

import pytest
from control_flow import agree, agree_saved
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.tracing.paths.exploration import Budget
from sgc.tracing.tracer import trace

POOL = ("yes", "no", "7", "", "a b")
XS = ["a", "bb", "c", "d", "e"]


def n_asks(graph: Any) -> int:
    return sum(node.op in ("gen", "select") for node in graph.nodes())


@sgc.function
def ask(s, x: str):
    s += x + ":" + sgc.gen("answer", max_tokens=3)
    s += sgc.gen("sure", regex="yes|no", max_tokens=3)
    return len(s["answer"])


def test_calls_in_a_comprehension():
    @sgc.function
    def program(s, xs: list[str]):
        states = [ask(x) for x in xs]
        for x, state in zip(xs, states, strict=True):
            s += f"{x} {state['answer']} {state.get_var('sure')} {state.ret_value}\n"
        return len(states)

    graph = agree_saved(program, POOL, xs=XS)
    assert n_asks(graph) <= 4
    agree(program, POOL, graph=graph, xs=["one"])


def test_tuples_of_streams_in_a_loop():
    @sgc.function
    def program(s, xs: list[str]):
        asked = []
        for n, x in enumerate(xs):
            state = ask(x)
            if state["sure"] != "no":
                asked.append((n, state))
        found = [(n, state["answer"]) for n, state in asked if "answer" in state]
        s += f"{found} {len(asked)}"
        if asked:
            s += asked[0][1]["answer"] + asked[-1][1]["sure"]
        return sum(state.ret_value for _, state in asked)

    assert n_asks(agree_saved(program, POOL, xs=XS)) <= 4


def test_copies_of_a_stream_while_the_model_says_so():
    @sgc.function(max_turns=9)
    def program(s, q: str):
        s += q
        copies = []
        while len(copies) < 6:
            (f,) = s.fork(1)
            f += sgc.gen("x", max_tokens=3)
            copies.append(f)
            s += "+"
            if f["x"] == "yes":
                break
        for f in copies:
            s += f["x"] + ","
        s += sgc.gen("last")

    agree_saved(program, POOL, q="x")


def test_a_name_that_a_stream_has_not():
    @sgc.function
    def program(s, xs: list[str]):
        states = [ask(x) for x in xs]
        for state in states:
            s += "other" if "other" in state else "none"
        try:
            s += states[0]["other"]
        except KeyError as error:
            s += f"{type(error).__name__}"
        except IndexError:
            s += "empty"

    agree_saved(program, POOL, xs=XS)


def s_of(states):
    return states[0]


GOES_ON = {
    "appended to": lambda state: state.__iadd__("more") and "",
    "its text": lambda state: state.text(),
    "given a variable": lambda state: state.set_var("y", "z") or state["y"],
    "compared": lambda state: f"{state is s_of([state])}",
    "forked": lambda state: str(len(state.fork(2))),
}


@pytest.mark.parametrize("case", one_in(3, GOES_ON))
def test_a_program_that_goes_on_with_such_a_stream_has_it_as_it_is(case):
    go_on = GOES_ON[case]

    @sgc.function
    def program(s, q: str):
        states = []
        for x in ("a", "b"):
            state = ask(x + q)
            if state["sure"] == "yes":
                states.append(state)
        for state in states:
            s += go_on(state) + state["answer"]

    agree_saved(program, POOL, q="x")


def test_a_stream_that_gets_a_variable_after_it_was_put_into_a_list():
    @sgc.function
    def program(s, q: str):
        states = []
        for x in ("a", "b"):
            state = ask(x + q)
            states.append(state)
            if state["sure"] == "yes":
                state += "?" + sgc.gen("answer", max_tokens=3)
        for state in states:
            s += state["answer"]

    agree_saved(program, POOL, q="x")


REFUSED = {
    "shown": lambda states: str(states),
    "looked for": lambda states: str(states[0] in states),
    "returned": lambda states: states,
}


@pytest.mark.sweep
@pytest.mark.parametrize("case", REFUSED)
def test_a_list_of_streams_is_no_value(case):
    use = REFUSED[case]

    @sgc.function
    def program(s, xs: list[str]):
        states = [ask(x) for x in xs]
        s += "x"
        return use(states)

    with pytest.raises(TraceError, match=r"test_streams_in_lists\.py:\d+: a stream in a list"):
        trace(program, budget=Budget(work=50_000), is_full=True)


@sgc.function
def tell(s, x: str):
    s += x + sgc.gen("told", max_tokens=3)


def test_streams_with_other_names_are_kept_apart():
    @sgc.function
    def program(s, q: str):
        states = []
        for x in ("a", "b"):
            state = ask(x + q)
            states.append(state if state["sure"] == "yes" else tell(x))
        for state in states:
            s += state["told"] if "told" in state else state["answer"]

    agree_saved(program, POOL, q="x")
