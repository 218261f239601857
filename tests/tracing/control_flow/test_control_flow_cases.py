"""Small programs that once compiled to something else, or might: one for each thing a run hides."""

from __future__ import annotations

import functools
from contextlib import contextmanager

import pytest
from control_flow import agree

import sgc

YES_NO = ["yes", "no"]


def generated_words(s):
    yield "-"
    s += sgc.gen("x")
    word = "left" if s["x"] == "yes" else "right"
    yield "-"
    yield word


def test_what_a_generator_that_a_loop_goes_over_keeps():
    @sgc.function
    def program(s, q: str):
        s += q
        for word in generated_words(s):
            s += word
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


class Words:
    def __init__(self, s):
        self.s, self.n, self.word = s, 0, "?"

    def __iter__(self):
        return self

    def __next__(self):
        self.n += 1
        if self.n == 1:
            self.s += sgc.gen("x")
            if self.s["x"] == "yes":
                self.word = "left"
            return "-"
        if self.n == 2:
            return self.word
        raise StopIteration


def test_what_an_iterator_of_the_users_keeps():
    @sgc.function
    def program(s, q: str):
        s += q
        for word in Words(s):
            s += word
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


class Chooser:
    def __init__(self, s):
        s += sgc.gen("x")
        if s["x"] == "yes":
            self.word = "left"
        else:
            self.word = "right"
        s += "chosen"


def test_an_object_that_is_being_made():
    @sgc.function
    def program(s, q: str):
        s += q
        chooser = Chooser(s)
        s += chooser.word + sgc.gen("z")

    agree(program, YES_NO, q="x")


def noted(s, i):
    s += f"{i}" + sgc.gen(f"x{i}")
    word = "R"
    if s[f"x{i}"] == "yes":
        word = "L"
    else:
        word = "l"
    if word == "L":
        return "left"
    return "right"


def follow(s):
    s += sgc.gen("y")
    if s["y"] == "yes":
        s += "1"
    else:
        s += "2"
    s += "3"


def test_results_that_a_function_in_c_has_collected():
    import itertools

    @sgc.function
    def program(s, q: str):
        s += q

        def step(before, i):
            found = noted(s, i)
            follow(s)
            return found

        words = list(itertools.accumulate(range(3), step))
        s += ",".join(words[1:]) + sgc.gen("z")

    agree(program, YES_NO, q="x", n=20)


@contextmanager
def tagged(s):
    with s.user():
        s += sgc.gen("x")
        tag = "left" if s["x"] == "yes" else "right"
        yield
        s += tag


def test_what_a_context_manager_of_the_users_keeps():
    @sgc.function
    def program(s, q: str):
        with tagged(s):
            s += q
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


class Tag:
    def __init__(self, s, tag):
        self.s, self.tag, self.inner = s, tag, s.user()

    def __enter__(self):
        self.inner.__enter__()

    def __exit__(self, *error):
        self.s += self.tag
        return self.inner.__exit__(*error)


def test_what_a_context_manager_class_keeps():
    @sgc.function
    def program(s, q: str):
        s += sgc.gen("x")
        with Tag(s, "left" if s["x"] == "yes" else "right"):
            s += q
        s += sgc.gen("z")

    agree(program, YES_NO, q="x")


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


def plus(a, b):
    return a + b


def test_a_partial_function():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        if s["x"] == "yes":
            make = functools.partial(plus, "left")
        else:
            make = functools.partial(plus, "right")
        s += "then"
        s += make(q) + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_a_method_of_a_hidden_list():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        if s["x"] == "yes":
            take = ["left"].pop
        else:
            take = ["right"].pop
        s += "then"
        s += take() + sgc.gen("z")

    agree(program, YES_NO, q="x")


class Name(str):
    pass


def test_attributes_of_a_text():
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        name = Name("n")
        if s["x"] == "yes":
            name.tag = "left"
        else:
            name.tag = "right"
        s += "then"
        s += name.tag + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_attributes_of_a_function():
    @sgc.function
    def program(s, q: str):
        def note():
            return None

        s += q + sgc.gen("x")
        if s["x"] == "yes":
            note.tag = "left"
        else:
            note.tag = "right"
        s += "then"
        s += note.tag + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_attributes_of_a_class_of_its_own():
    @sgc.function
    def program(s, q: str):
        class Kind:
            tag = "?"

        s += q + sgc.gen("x")
        if s["x"] == "yes":
            Kind.tag = "left"
        else:
            Kind.tag = "right"
        s += "then"
        s += Kind.tag + sgc.gen("z")

    agree(program, YES_NO, q="x")


def test_attributes_of_an_object():
    class Box:
        pass

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        box = Box()
        if s["x"] == "yes":
            box.tag = "left"
        else:
            box.tag = "right"
        s += "then"
        s += box.tag + sgc.gen("z")

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
