"""The characters of texts known only at run time, beside other items."""

from __future__ import annotations

from typing import Any

import pytest
from around import around
from control_flow import agree_saved, equal_or_refused

import sgc

POOL = ("abc", "b", "", "cab Ω", "aé b", "bb ba a")


def lettered(s: Any, text: str) -> Any:
    words = text.split()
    letters = "abcd"[: len(words)]
    for letter, word in zip(letters, words, strict=False):
        s += f"{letter}) {word}\n"
    s += "Best: " + sgc.select("best", choices=list(letters) or ["none"])
    return letters


def numbered(s: Any, text: str) -> Any:
    found = {}
    for n, char in enumerate(text, 1):
        s += f"{n}{char.upper()} "
        found[char] = n
    return found


def of_two_texts(s: Any, text: str) -> Any:
    n = 0
    for one, other in zip(text, "abc", strict=False):
        n += one == other
        s += f"{one}{other}:" + sgc.gen("x", max_tokens=2)
    return n


def of_a_filled_text(s: Any, text: str) -> Any:
    for one, other in zip(f"<{text}>", text, strict=False):
        s += f"{one}{other} "
    return [n for n, char in enumerate(text) if char == "b"]


EQUAL = (lettered, numbered, of_two_texts, of_a_filled_text)


def strictly(s: Any, text: str) -> Any:
    try:
        for one, other in zip(text, "abc", strict=True):
            s += one + other
    except ValueError as error:
        s += str(error)
    return None


def as_a_list(s: Any, text: str) -> Any:
    pairs = list(zip(text, text[2:], strict=False))
    s += f"{pairs}"
    return dict(enumerate(text))


OTHERS = (strictly, as_a_list)


@pytest.mark.sweep
@pytest.mark.parametrize("body", EQUAL)
def test_they_are_taken_in_turn(body: Any) -> None:
    agree_saved(around(body, gets_text=True), POOL, n=12, q="x")


@pytest.mark.parametrize("body", OTHERS)
def test_others_are_equal_or_refused(body: Any) -> None:
    equal_or_refused(around(body, gets_text=True), POOL)
