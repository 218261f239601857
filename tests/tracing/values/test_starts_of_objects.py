"""`__init__` of the program's classes, given values known only at run time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pytest
from control_flow import agree_saved, equal_or_refused

import sgc

POOL = ("b a 1 b", "", "2", "x y", "c c c", "é 7 b", "no")
T = TypeVar("T")


class Stock:
    def __init__(self, words):
        self.counts = dict(Counter(words))
        self.words = sorted(words, key=len)
        self.log = []

    def put(self, word):
        self.counts[word] = self.counts.get(word, 0) + 1
        self.log.append(word)

    @contextmanager
    def logged(self):
        self.log.append("begin")
        yield
        self.log.append("end")


class Named(Stock):
    kind = "named"

    def __init__(self, words, name="none", *more, **others):
        super().__init__([word.upper() for word in words])
        self.name = name
        if name == "2":
            self.kind = "two"
        self.more = (*more, others)


class Asking:
    def __init__(self, s, words):
        self.answers = []
        for word in words:
            s += word + sgc.gen("z", max_tokens=2)
            self.answers.append(s["z"])


class Failing:
    def __init__(self, words):
        if not words:
            raise ValueError("none")
        self.n = int(words[0])


class Giving:
    def __init__(self, words):
        self.words = words
        return words or None


class Slotted:
    __slots__ = ("first",)

    def __init__(self, words):
        self.first = words[0] if words else ""


class Boxed(Generic[T]):
    def __init__(self, value: T):
        self.value = value


@dataclass
class Posted:
    words: list[str]
    n: int = field(init=False)

    def __post_init__(self):
        self.n = len(self.words) * 2


class Once:
    def __new__(cls, words):
        return super().__new__(cls)

    def __init__(self, words):
        self.words = sorted(words)


def of_code(s, words):
    stock = Stock(words)
    s += "."
    stock.put("a")
    with stock.logged():
        stock.put("z")
        s += f"{stock.counts}"
    return stock.counts, stock.words, stock.log


def of_a_base(s, words):
    last = words[-1] if words else "none"
    named = Named(words, last, 1, 2, x=3)
    s += named.kind
    return named.counts, named.name, named.more, isinstance(named, Stock), type(named).__name__


def that_asks(s, words):
    return Asking(s, words).answers


def that_fails(s, words):
    try:
        return Failing(words).n
    except ValueError as error:
        s += f"{error}"
        return "failed"


def that_gives_something(s, words):
    return Giving(words).words


def with_slots(s, words):
    return Slotted(words).first


def of_a_generic_class(s, words):
    return Boxed(words).value, Boxed[list](words[:1]).value


def of_a_dataclass(s, words):
    posted = Posted(words)
    s += f"{posted.n}"
    return posted.n, posted.words


def one_of_each_word(s, words):
    longest = 0
    for word in words:
        longest = max(longest, len(Stock(list(word)).words))
        s += "."
    return longest


def by_names_in_a_table(s, words):
    made = {"one": Stock, "two": Named}["two" if "b" in words else "one"](words)
    s += "."
    return made.words


def with_its_own_new(s, words):
    return Once(words).words


def wrong_arguments(s, words):
    return Stock(words, words)


def program(body: Callable[..., Any]) -> Any:
    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("a", max_tokens=9)
        found = body(s, s["a"].split())
        s += f"{found}" + sgc.gen("b", max_tokens=3)
        return found

    return shown


EQUAL = (
    of_code, of_a_base, that_fails, with_slots, of_a_dataclass, one_of_each_word,
    by_names_in_a_table,
)  # fmt: skip
EITHER = (that_asks, that_gives_something, of_a_generic_class, with_its_own_new, wrong_arguments)


@pytest.mark.sweep
@pytest.mark.parametrize("body", EQUAL)
def test_objects_begin_as_pythons(body: Callable[..., Any]) -> None:
    agree_saved(program(body), POOL, n=10, q="x")


@pytest.mark.parametrize("body", EITHER)
def test_others_are_equal_or_refused(body: Callable[..., Any]) -> None:
    equal_or_refused(program(body), POOL)
