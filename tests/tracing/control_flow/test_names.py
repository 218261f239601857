"""Names and variables after paths were joined: set in one arm, shared, captured, deleted."""

from __future__ import annotations

import pytest
from control_flow import agree

import sgc

YES_NO = ["yes", "no"]


def test_a_name_of_its_own_in_one_arm_of_a_fork():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        group = s.fork(2)
        for f in group:
            f += "c" + sgc.gen("y")
            if f["y"] == "yes":
                f += sgc.gen("x")
            f += "."
        group.join()
        s += sgc.gen("z")

    agree(program, YES_NO, q="x", n=20)


def test_a_name_set_in_one_arm_is_asked_for():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        if s["x"] == "yes":
            s += sgc.gen("y")
        s += "then"
        if "y" in s:
            s += s["y"]
        else:
            s += "none"
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_a_name_that_is_asked_for_after_the_ways_were_joined():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        if s["x"] != "yes":
            s += sgc.gen("y")
        s += "then" + sgc.gen("w")
        if s["w"] == "no":
            s += "y" if "y" in s else "none"
        s += sgc.gen("z")

    agree(program, YES_NO, q="x", n=20)


def test_all_the_variables_after_an_arm_that_sets_one():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        if s["x"] == "yes":
            s += sgc.gen("y")
        s += "then"
        s += ",".join(s.variables())
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_a_list_that_a_variable_and_a_name_share():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        found = ["a"]
        if s["x"] == "yes":
            s["found"] = found
        else:
            s["found"] = list(found)
        s += "then"
        found.append("b")
        s += ",".join(s["found"]) + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_the_same_list_in_two_variables():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        one = ["a"]
        if s["x"] == "yes":
            two = one
        else:
            two = ["a"]
        s += "then"
        one.append("b")
        s += ",".join(two) + sgc.gen("z")

    agree(program, YES_NO, q="x")


def cells():
    n = ["-"]

    def get():
        return n[0]

    def put(value):
        n[0] = value

    return get, put


def bare_cells():
    n = "-"

    def get():
        return n

    def put(value):
        nonlocal n
        n = value

    return get, put


@pytest.mark.parametrize("make", [cells, bare_cells])
def test_a_variable_that_two_functions_share(make):
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        get, put = make()
        if s["x"] == "yes":
            get, _ = make()
        s += "then"
        put("+")
        s += get() + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_closures_that_capture_what_differs():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        word = "left"
        if s["x"] == "yes":
            word = "right"

        def show():
            return word

        tell = lambda end=word: end  # noqa: E731
        s += "then"
        s += show() + tell() + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_nonlocal_and_del():
    @sgc.function
    def program(s, q: str):
        n = 0

        def bump():
            nonlocal n
            n += 1

        s += q + sgc.gen("x")
        word = "w"
        if s["x"] == "yes":
            bump()
            del word
        s += "then"
        try:
            s += word
        except UnboundLocalError:
            s += "gone"
        s += f"{n}" + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_a_variable_that_is_deleted_must_be_set_on_every_path():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        if s["x"] == "yes":
            told = s["x"]
        s += "."
        try:
            del told
        except UnboundLocalError:
            s += "not set"
        s += sgc.gen("y")

    agree(program, ["yes", "no"], q="x")
