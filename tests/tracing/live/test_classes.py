"""Abstract classes, errors with attributes, partials in tables, and objects that hold each other.
Nothing here relies on the trace check."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import pytest
from control_flow import agree, outcome, replying
from traced_at_once import live_at_once

import sgc
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing import tracer

REPLIES = ("b", "a,bb", "", "3", "12", "bb,a,ccc")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)


class Rule(ABC):
    name, weight = "rule", 1

    @abstractmethod
    def check(self, word: str) -> str | None: ...

    def run(self, words: list[str]) -> Iterator[tuple[int, str, str, int]]:
        for number, word in enumerate(words, start=1):
            if message := self.check(word):
                yield number, self.name, message, self.weight


class Long(Rule):
    name = "long"

    def __init__(self, limit: int = 1) -> None:
        self.limit = limit

    def check(self, word: str) -> str | None:
        return f"{len(word) - self.limit} too long" if len(word) > self.limit else None


class Empty(Rule):
    name, weight = "empty", 3

    def check(self, word: str) -> str | None:
        return "is empty" if not word else None


RULES: list[Rule] = [Long(), Empty()]


@sgc.function
def ruled(s):
    s += "q" + sgc.gen("g", stop="\n")
    found = sorted(each for rule in RULES for each in rule.run(s["g"].split(",")))
    for number, name, message, _ in found:
        s += f"{number} {name} {message}" + sgc.gen("c", stop="\n")
    return sum(weight for *_, weight in found)


class Invalid(Exception):
    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.hint = hint


def word_of(value: str, *, low: int = 1, high: int = 3) -> str:
    if not low <= len(value) <= high:
        raise Invalid(f"needs {low} to {high} characters", hint="shorter" if value else "")
    return value


def number(value: str, least: int) -> int:
    try:
        found = int(value)
    except ValueError:
        raise Invalid("no number", hint="digits") from None
    if found < least:
        raise Invalid(f"less than {least}")
    return found


FIELDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "name": ("name", partial(word_of, low=2)),
    "kind": ("kind", word_of),
    "nights": ("nights", partial(number, least=5)),
}


@sgc.function
def form(s):
    filled, hints = {}, []
    for key, (label, validate) in FIELDS.items():
        s += label + sgc.gen(key, stop="\n")
        try:
            filled[key] = validate(s[key])
        except Invalid as problem:
            s += f"That {problem}."
            hints.append(problem.hint)
    return filled, hints


@dataclass
class Node:
    text: str
    score: int = 0
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)

    def add(self, text: str) -> Node:
        child = Node(text, self.score + len(text), self)
        self.children.append(child)
        return child


@sgc.function
def beam(s):
    root = Node("root")
    kept = [root]
    for _ in range(2):
        grown = []
        for node in kept:
            s += node.text + sgc.gen("g", stop="\n")
            grown += [node.add(word) for word in s["g"].split(",")]
        kept = heapq.nlargest(2, grown, key=lambda each: each.score)
    best = max(kept, key=lambda each: each.score)
    order = sorted(root.children, key=lambda each: -each.score)
    kept.sort(key=lambda each: each.text)
    same = kept[0] is best or kept[0] != best.parent
    return best.text, [each.text for each in order], [each.text for each in kept], same


LIMITS = {"a": 2, "b": 3}
SHARES = {"one": lambda n: n, "limit": lambda n: min(n, limit_for("b")), "none": lambda n: 0}


@cache
def limit_for(word: str) -> int:
    return next((limit for name, limit in LIMITS.items() if name in word), 1)


def question(s, word: str, others: list[str]) -> tuple[str, int]:
    s += f"{word}?" + sgc.gen("g", stop="\n")
    return s["g"], len(others)


@sgc.function
def shared(s):
    s += "q" + sgc.gen("g", stop="\n")
    words = s["g"].split(",")
    limits = {word: limit_for(word) for word in words}
    found = [question(s, word, [each for each in words if each is not word]) for word in words]
    s += sgc.select("share", choices=list(SHARES))
    return limits, found, [SHARES[s["share"]](n) for _, n in found]


@sgc.function
def spread(s):
    s += "q" + sgc.gen("g", stop="\n")
    rows: list[Any] = [{"text": word} if word else 5 for word in s["g"].split(",")]
    nodes = [Node(**row) for row in rows]
    nodes[0].score += 1
    return [(each.text, each.score) for each in nodes]


@pytest.mark.parametrize("program", [ruled, form, beam, shared, spread], ids=lambda each: each.name)
def test_as_interpreted(program: Any) -> None:
    agree(program, REPLIES, n=8)


@sgc.function
def said(s, messages: list):
    for message in messages:
        s += sgc.user(message) + sgc.assistant(sgc.gen("a", max_tokens=3))
    return len(messages)


def test_messages_of_any_type() -> None:
    """What is no text ends a run with the interpreter's error."""
    compiled = sgc.Program(tracer.trace(said, is_full=True))
    for messages in (["a", "b"], [], ["a", 5], [None], ["a", {"b": 1}]):
        found = [
            outcome(partial(each.run_once, {"messages": messages}, RunOptions(seed=1), backend))
            for each in (said, compiled)
            for backend in [replying(1, REPLIES)]
        ]
        assert found[0] == found[1], messages
