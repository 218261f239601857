"""Lists of a module that code goes over and does not change, beside what it does."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pytest
from control_flow import agree, equal_or_refused

import sgc
from sgc.errors import TraceError
from sgc.tracing.tracer import trace


@dataclass(frozen=True)
class Example:
    text: str
    label: str


BANK = [Example("it died after a day", "bug"), Example("add a dark mode", "feature")]
ROWS = [["a"], ["b"]]
TWICE = re.compile(r"(?=^\d+\s|\Z)")


def balanced(text: str, most: int) -> list[Example]:
    groups = defaultdict(list)
    for example in sorted(BANK, key=lambda each: (each.text in text, each.text), reverse=True):
        if len(groups[example.label]) < most:
            groups[example.label].append(example)
    return [each for label in sorted(groups) for each in groups[label]]


def of_rows(text: str) -> int:
    groups: dict[str, list[str]] = defaultdict(list)
    for row in ROWS:
        groups[text] = row
    groups[text].append(text)
    return len(ROWS[1])


@sgc.function
def examples(s, q: str, most: int = 1):
    for each in balanced(q, most):
        s += f"{each.text}: {each.label}\n"
    s += q + sgc.gen("label", max_tokens=4)


def test_objects_of_a_modules_list_are_grouped() -> None:
    agree(examples, ("a", "b"), n=4, q="add a dark mode")


def test_what_it_would_change_is_refused() -> None:
    @sgc.function
    def program(s, q: str):
        s += str(of_rows(q)) + sgc.gen("x", max_tokens=3)

    equal_or_refused(program, ("a", "b"))


def test_a_pattern_of_code_is_looked_at_before_a_run() -> None:
    @sgc.function
    def program(s, q: str):
        found: Any = {each.start(): each[0].upper() for each in TWICE.finditer(q)}
        s += str(len(found)) + sgc.gen("x", max_tokens=3)

    with pytest.raises(TraceError, match="look ahead or behind"):
        trace(program, is_full=True)


def chunks(text: str, size: int) -> list[str]:
    piece: list[str] = []
    found = []
    for word in text.split():
        piece.append(word)
        if len(piece) >= size:
            found.append(" ".join(piece))
            piece = []
    return found


def test_a_variable_may_have_the_name_of_the_codes_entry() -> None:
    @sgc.function
    def program(s, q: str):
        s += "|".join(chunks(q, 2)) + sgc.gen("x", max_tokens=3)

    agree(program, ("a b", "b", ""), n=4, q="x y z")
