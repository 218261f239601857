"""Handlers of the program's own errors: code that may raise one reaches its handler, however the
code comes to it. Nothing here relies on the trace check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import methodcaller
from typing import Any

import pytest
from control_flow import agree
from traced_at_once import live_at_once

import sgc
from sgc.ir.graph import Lit
from sgc.tracing import tracer
from sgc.tracing.tracer import trace

REPLIES = ("a", "bad", "bbb", "worse")


class Bad(Exception):
    def __init__(self, word: str):
        super().__init__(f"bad: {word}")
        self.word = word


class Worse(Bad):
    pass


def refuse(word: str) -> str:
    if word == "bad":
        raise Bad(word)
    if word == "worse":
        raise Worse(word)
    return word


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)


@dataclass
class Box:
    word: str
    taken: list[str] = field(default_factory=list)

    def take(self) -> str:
        self.taken.append(self.word)
        return refuse(self.word)


class Checked(Box):
    @property
    def checked(self) -> str:
        return self.take()


class Shown(Box):
    def __str__(self) -> str:
        return f"<{self.take()}>"


class Spelled(Box):
    def letters(self):
        yield from self.word
        self.take()


@dataclass
class Plain:
    take: str  # another class's method has this name
    n: int = 0

    def add(self) -> int:
        self.n += 1
        return self.n


def by_method(box: Box) -> Any:
    return box.take()


def by_property(box: Checked) -> Any:
    return box.checked


def by_format(box: Shown) -> Any:
    return f"{box}!"


def by_generator(box: Spelled) -> Any:
    return list(box.letters())


def by_name(box: Box) -> Any:
    return getattr(box, "".join(["ta", "ke"]))()


def by_methodcaller(box: Box) -> Any:
    return methodcaller("take")(box)


WAYS = {
    by_method: Box, by_property: Checked, by_format: Shown, by_generator: Spelled, by_name: Box,
    by_methodcaller: Box,
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_an_error_reaches_its_handler(way):
    made = WAYS[way]

    @sgc.function
    def program(s, q: str):
        s += q + sgc.gen("x")
        box, told = made(s["x"]), []
        try:
            told.append(way(box))
        except Worse as error:
            told.append(f"worse {error.word}")
        except Bad as error:
            told.append(error.word)
        s += "y" + sgc.gen("y")
        return told, box.taken

    agree(program, REPLIES, q="x")


@sgc.function
def held_calls(s, q: str):
    s += q + sgc.gen("x")
    later: list[Callable[[], Any]] = []
    told: list[Any] = []
    try:
        told.append(refuse(s["x"]))
    except Bad:
        told.append("at once")
    for n in range(3):
        try:
            for each in later:
                told.append(each())
            told.append(n)
        except Bad as error:
            told.append(error.word)
        s += "y" + sgc.gen("y")
        word = s["y"]
        later.append(partial(refuse, word) if n else lambda: len(told))
    return told


def test_what_is_held_now_may_raise_later():
    agree(held_calls, REPLIES, q="x")


@sgc.function
def made_later(s, q: str):
    items: list[Any] = [Plain(q)]
    told: list[Any] = []
    for _ in range(3):
        s += q + sgc.gen("x")
        try:
            for item in items:
                told.append(item.add() if isinstance(item, Plain) else item.take())
        except Bad as error:
            told.append(str(error))
        items.append(Box(s["x"]))
    return told


def test_objects_of_a_class_that_code_makes_later():
    agree(made_later, REPLIES, q="x")


@sgc.function
def iterated_later(s, q: str):
    told: list[Any] = []
    letters: Any = iter([q])
    for _ in range(3):
        try:
            for letter in letters:
                told.append(letter)
        except Bad as error:
            told.append(error.word)
        s += q + sgc.gen("x")
        letters = Spelled(s["x"]).letters()
    return told


def test_iterators_of_the_program_run_its_code():
    agree(iterated_later, REPLIES, q="x")


@dataclass
class Holder:
    error: Exception | None = None

    def use(self) -> int:
        if self.error is not None:
            raise self.error
        return 1


@sgc.function
def held_error(s, q: str):
    s += q + sgc.gen("x")
    holder, told = Holder(), []
    for _ in range(2):
        try:
            told.append(holder.use())
        except Bad as error:
            told.append(error.word)
        if s["x"] != "a":
            holder.error = Bad(s["x"])
    return told


def test_an_error_that_data_hold_is_raised():
    agree(held_error, REPLIES, q="x")


@sgc.function
def cannot_raise(s, words: list[str]):
    plain, told = Plain("no"), []
    try:
        for word in words:
            plain.add()
            told.append(f"{plain.take}{word}")
            s += word + sgc.gen("x")
            told.append(refuse(s["x"]))
            plain.add()
    except Bad as error:
        told.append(error.word)
    return told, plain.n


def test_only_code_that_may_raise_has_a_path_to_the_handler():
    graph = trace(cannot_raise, is_full=True)
    performed = [node for node in graph.nodes() if node.op == "perform"]
    caught = [node for node in performed if node.get("catches") == Lit(True)]
    codes = [str(node.get("code").value).rpartition("def piece")[2] for node in caught]
    assert {"refuse(" in code for code in codes} == {True}
    agree(cannot_raise, REPLIES, words=["u", "v"])


class Stuck(Exception):
    def __init__(self, words: list[str]):
        super().__init__(", ".join(words))
        self.words = words


def in_order(words: list[str]) -> list[str]:
    if "bad" in words:
        raise Stuck(sorted(words))
    return [*words]


@sgc.function
def unpacked(s, q: str):
    s += q + sgc.gen("x")
    words = [q, s["x"]]
    try:
        order = [*in_order(words), words.pop()]
    except Stuck as error:
        order = [*error.words, "?"]
        return (q, *error.words), sorted({*error.words}), order
    return order, words


def test_what_an_error_holds_is_unpacked():
    agree(unpacked, REPLIES, q="x")


@sgc.tool(effect="pure")
def joined(one: str, other: str = "-") -> str:
    return one + other


def asks(s: Any, one: str, other: str = "-") -> str:
    s += one + sgc.gen("z")
    return other + s["z"]


@sgc.function
def unpacks_for_a_tool(s, q: str):
    s += q + sgc.gen("x")
    words = s["x"].split(" ")
    try:
        return joined(*words[:2]), asks(s, *words[1:])
    except TypeError as error:
        return str(error)


def test_a_call_unpacks_a_list_of_any_length():
    agree(unpacks_for_a_tool, ("a", "a b", "a b c", "a b c d e", ""), tools=[joined], q="x")
