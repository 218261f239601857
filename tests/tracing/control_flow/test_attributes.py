"""Attributes that paths set differently: of texts, functions, classes, objects."""

from __future__ import annotations

from control_flow import agree

import sgc
from sgc.programs.compiling import compile_function

YES_NO = ["yes", "no"]


PRICES = {"yes": 1.5, "no": 2.0}


class Name(str):
    pass


class Cart:
    def __init__(self):
        self.items = []

    @property
    def total(self):
        return sum(PRICES[item] for item in self.items)


def test_a_loop_in_a_property_is_a_loop():
    @sgc.function
    def program(s, xs: list[str]):
        cart = Cart()
        for x in xs:
            if x in PRICES:
                cart.items.append(x)
        s += f"It costs {cart.total:.2f}." + sgc.gen("x")

    agree(program, YES_NO, n=2, xs=["yes", "x", "no"])
    assert len([*compile_function(program, {}).graph.nodes()]) < 100


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
