"""Loops in the `__init__` of a class of the program's, whose turns ask the model."""

from __future__ import annotations

from typing import Any

import pytest
from control_flow import agree, equal_or_refused
from tests_support import one_in

import sgc

WORDS = ("yes", "no", "")


class Notes:
    def __init__(self, s: Any, topics: list[str]) -> None:
        self.notes = []
        for topic in topics:
            s += topic + ":" + sgc.gen("x", max_tokens=4)
            self.notes.append(s["x"])


class Tagged(Notes):
    """Its loop no longer reads the object that the call gives."""

    def __init__(self, s: Any, topics: list[str], tag: str) -> None:
        super().__init__(s, topics)
        self.tag = "long" if s["x"] == "yes" else tag
        self.parts = [1, 2] if s["x"] == "yes" else [3]
        s += "parts"
        for topic in topics:
            s += topic + "?" + sgc.gen("x", max_tokens=4)


class Replaced(Notes):
    """Its first parameter is another object when it ends."""

    def __init__(self, s: Any, topics: list[str]) -> None:
        super().__init__(s, topics)
        self.tag = "first" if s["x"] == "yes" else "second"
        self = None
        for topic in topics:
            s += topic + "?" + sgc.gen("x", max_tokens=4)


@pytest.mark.parametrize("topics", [[], ["a"], ["a", "b", "c"]])
def test_they_are_loops(topics: list[str]) -> None:
    graph = agree(noted, WORDS, topics=["-", *topics])
    assert len([*graph.nodes()]) < 40


@sgc.function
def noted(s, topics: list[str]):
    notes = Notes(s, topics)
    s += "done" + ",".join(notes.notes)
    return notes.notes


@pytest.mark.parametrize("topics", one_in(2, [["a"], ["a", "b", "c"]]))
def test_the_object_is_kept_though_its_init_reads_it_no_more(topics: list[str]) -> None:
    agree(tagged, WORDS, topics=topics)


@sgc.function
def tagged(s, topics: list[str]):
    s += sgc.gen("x", max_tokens=4)
    notes = Tagged(s, topics, "short")
    s += notes.tag + "".join(str(each) for each in notes.parts)
    return len(notes.parts), notes.tag, notes.notes


def test_an_init_that_has_replaced_its_object_does_not_merge() -> None:
    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x", max_tokens=4)
        made = Replaced(s, ["a", "b"])
        s += made.tag
        return made.tag

    assert equal_or_refused(program, WORDS) == "equal"
