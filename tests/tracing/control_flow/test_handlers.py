"""Handlers and finally: which errors they see, in loops, arms and with blocks."""

from __future__ import annotations

import pytest
from control_flow import agree, replying

import sgc
from sgc.errors import ProgramRaised, TraceError
from sgc.programs.program import Program
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace

YES_NO = ["yes", "no"]


def raises_if(s):
    s += "in"
    if s["y"] == "yes":
        raise ValueError("yes")
    s += "out"


def test_what_only_the_callers_handler_reads():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        word = "left" if s["x"] == "yes" else "right"
        s += sgc.gen("y")
        try:
            raises_if(s)
        except ValueError:
            s += word
        s += sgc.gen("z")

    agree(program, YES_NO, q="x", n=20)


def test_a_handler_of_everything_in_a_loop():
    @sgc.function
    def program(s, q: str):
        s += q
        n = 0
        while True:
            try:
                s += sgc.gen("x")
                if s["x"] == "yes":
                    break
                n = 1 - n
            except:  # noqa: E722
                pass
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_a_finally_that_returns():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        try:
            if s["x"] == "yes":
                return "left"
            s += "then"
        finally:
            s += "finally"
            if s["x"] == "no":
                return "right"  # noqa: B012
        s += sgc.gen("z")
        return "end"

    agree(program, [*YES_NO, "other"], q="x")


def test_an_error_kept_after_its_handler():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        kept = None
        try:
            if s["x"] == "yes":
                raise ValueError("left")
            raise KeyError("right")
        except (ValueError, KeyError) as error:
            kept = error
        s += "then"
        s += kept.args[0] + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_a_loop_after_a_handler():
    @sgc.function
    def program(s):
        s += sgc.gen("a") + "/" + sgc.gen("b")
        try:
            w = str(int(s["a"]) + 1)
        except ValueError as error:
            w = "none: " + str(error)
        for x in s["b"].split():
            s += x + w

    agree(program, ["12", "no", "a b c"])


def test_one_block_that_ends_in_an_error():
    @sgc.function
    def called(t, word: str):
        t += word + sgc.gen("deep")
        t += t["deep"][-1]

    @sgc.function
    def program(s):
        s += sgc.gen("x")
        s += sgc.join("/", sgc.map(called, s["x"].split())["deep"])
        s += s["never set"]

    graph = trace(program, is_full=True)
    assert len(graph.blocks) == 1
    with pytest.raises(ProgramRaised, match="UnknownVariable: no variable 'never set'"):
        Program(graph).run_once({}, RunOptions(), replying(0, YES_NO))


def test_a_handler_around_a_with_block_is_seen():
    @sgc.function
    def called(t, word: str):
        t += word + sgc.gen("deep")
        if t["deep"] == "no":
            raise RuntimeError("no")

    @sgc.function
    def program(s):
        s += sgc.gen("x")
        try:
            with s.copy() as copy:
                copy += sgc.join("/", sgc.map(called, s["x"].split())["deep"])
        except RuntimeError:
            s += "handled"
        s += sgc.gen("last")

    with pytest.raises(TraceError, match="an error that called may raise"):
        trace(program, is_full=True)
