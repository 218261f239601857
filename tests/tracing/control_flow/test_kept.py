"""What a run keeps out of sight: in iterators, generators, objects, context managers, C."""

from __future__ import annotations

import functools
from contextlib import contextmanager

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
