"""Calls of the user's functions: recursion, starred arguments, functions that call themselves."""

from __future__ import annotations

from control_flow import agree

import sgc

YES_NO = ["yes", "no"]


def down(s, n):
    if n == 0:
        return "end"
    s += f"{n}" + sgc.gen("x")
    if s["x"] == "yes":
        s += "!"
        found = down(s, n - 1)
    else:
        found = down(s, n - 1) + "-"
    s += "."
    return found


def test_recursion_with_a_static_bound():
    @sgc.function
    def program(s, q: str):
        s += q
        s += down(s, 3) + sgc.gen("z")

    agree(program, YES_NO, q="x")


@sgc.function
def counting(t, n: int):
    t += f"{n}" + sgc.gen("x")
    if n == 0 or t["x"] == "yes":
        return "end"
    inner = counting(n - 1)
    t += inner.text()
    return inner.ret_value + "-"


def test_functions_that_call_themselves():
    @sgc.function
    def program(s, q: str):
        s += q
        s += counting(3).ret_value + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_star_arguments():
    def told(s, *words, **more):
        for word in words:
            s += word
        if s["x"] == "yes":
            s += more["end"]
        s += "."
        return words

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        words = ["a", "b"] if s["x"] == "yes" else ["a"]
        s += "then"
        got = told(s, *words, **{"end": q})
        s += f"{len(got)}" + sgc.gen("z")

    agree(program, YES_NO, q="x")
