"""Turns of a loop that neither ask nor decide anything: they are run as Python runs them."""

from __future__ import annotations

import pytest
from control_flow import agree

import sgc
from sgc.errors import TraceError
from sgc.ir.graph import Lit
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.tracing.paths.exploration import Report
from sgc.tracing.tracer import trace

YES_NO = ["yes", "no"]


def primes_to(n: int) -> list[int]:
    is_prime = [True] * (n + 1)
    for i in range(2, int(n**0.5) + 1):
        if is_prime[i]:
            for j in range(i * i, n + 1, i):
                is_prime[j] = False
    return [i for i in range(2, n + 1) if is_prime[i]]


@sgc.function
def asks_after_a_sieve(s, q: str):
    primes = primes_to(400)
    s += f"{q} {primes[-1]}" + sgc.gen("x")
    if s["x"] == "yes":
        s += str(len(primes)) + sgc.gen("y")
    return s["x"]


@sgc.function
def asks_in_some_turns(s, q: str):
    total = 0
    s += q
    for i in range(40):
        total += i
        if i % 10 == 9:
            s += f"{total}" + sgc.gen("x")
            if s["x"] == "yes":
                total = 0
    s += f"{total}" + sgc.gen("z")


@sgc.function
def counts_after_a_reply(s, q: str):
    s += q + sgc.gen("x")
    n = 2 if s["x"] == "yes" else 3
    for i in range(20):
        n = (n * 7 + i) % 11
    s += f"{n}" + sgc.gen("z")


@pytest.mark.parametrize("program", [asks_after_a_sieve, asks_in_some_turns, counts_after_a_reply])
def test_runs_are_as_interpreted(program):
    agree(program, YES_NO, q="a")


def test_a_table_that_a_loop_fills_costs_no_step_for_each_turn_and_item():
    report = Report()
    graph = trace(asks_after_a_sieve, report=report, is_full=True)
    # 1,000 turns over 400 items: each turn was compared by its items, 400,000 steps.
    assert report.work < 40_000
    texts = [operand.value for node in graph.nodes() for _, operand in node.fields
             if isinstance(operand, Lit)]  # fmt: skip
    assert " 397" in texts  # known while tracing, so the loop is not in the graph


@sgc.function
def waits_for_ever(s, q: str):
    s += q
    n = 0
    while True:
        n = 1 - n


def test_a_loop_without_end_is_found():
    with pytest.raises(TraceError, match="lines of Python"):
        trace(waits_for_ever)


@sgc.function
def counts_far(s, q: str):
    n = 0
    for i in range(2_000_000):
        n += i
    s += q + sgc.gen("x")
    if s["x"] == "yes":
        s += f"{n}"
    return s.text()


def test_a_call_does_not_trace_long_loops_to_their_end():
    with Endpoint(ScriptedBackend(lambda *_: "yes")) as endpoint:
        state = counts_far("a", backend=endpoint)
        state.sync()
    assert state.ret_value == "ayes1999999000000"
    assert "more than 600000 lines of Python" in counts_far.explain()


@sgc.function
def swallows(s, q: str):
    n = 0
    while n < 3_000_000:
        try:
            n += 1
        except Exception:
            n = 0
    s += q + sgc.gen("x")


def test_the_program_cannot_catch_that_it_takes_too_long():
    with pytest.raises(TraceError, match="lines of Python"):
        trace(swallows, is_strict=True)
