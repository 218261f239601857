"""Attributes that paths set differently: of texts, functions, classes, objects."""

from __future__ import annotations

from control_flow import agree

import sgc

YES_NO = ["yes", "no"]


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
