"""Functions and classes of Python's library that are given live objects, and what classes of the
program say of themselves. Nothing here relies on the trace check."""

from __future__ import annotations

import re
import shlex
import textwrap
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache, cached_property, partial
from graphlib import TopologicalSorter
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, ClassVar

import pytest
from control_flow import agree
from pydantic import BaseModel, Field, ValidationError
from traced_at_once import live_at_once

import sgc
from sgc.errors import TraceError
from sgc.tracing import tracer

REPLIES = ("b", "a,bb", "", "3", "'a b", "low HIGH", "remove 7")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)


class Level(Enum):
    LOW = 1
    HIGH = 2
    TOP = 2  # another name for it

    @classmethod
    def of(cls, word: str) -> Level:
        return cls[word.upper()] if word.upper() in cls.__members__ else cls.LOW


@dataclass
class Player:
    K: ClassVar[int] = 32

    name: str
    rating: float = 1000.0
    won: list[str] = field(default_factory=list)

    def same(self, other: Any) -> bool:
        return type(self) is type(other)


class Guest(Player): ...


@sgc.function
def of_classes(s, words: list[str]):
    players = []
    for word in words:
        s += word + sgc.gen("g", stop="\n")
        players.append(Player(s["g"]) if "a" in s["g"] else Guest(word, rating=len(s["g"])))
        players[-1].won.append(s["g"])
    names = [type(each).__name__ for each in players] + [
        str(each.same(players[0])) for each in players
    ]
    table = sorted(players, key=attrgetter("rating"), reverse=True)
    pairs = zip((1, "a", len(names), None), (int, str, bool, str), strict=True)
    kinds = [type(each) is kind for each, kind in pairs]
    said = max(players, key=methodcaller("same", None)).name if players else ""
    s += ",".join(names) + said + sgc.gen("z", stop="\n")
    found = sorted(((len(each.name), each.name) for each in players), key=itemgetter(1))
    return names, [each.name for each in table], kinds, found, sum(each.K for each in players)


@sgc.function
def of_members(s):
    s += "q" + sgc.gen("g", stop="\n")
    levels = [Level.__members__.get(each.upper(), Level.LOW) for each in s["g"].split()]
    found = [each.upper() in Level.__members__ for each in s["g"].split()]
    names = [name for name, each in Level.__members__.items() if each in levels]
    s += ",".join(names) + sgc.gen("z", stop="\n")
    return [each.name for each in levels], found, names, Level.of(s["g"]).name


@sgc.function
def of_texts(s, words: list[str]):
    fill = partial(textwrap.fill, width=8, initial_indent="- ")
    squeezed = partial(re.sub, r"\s+", " ")
    kept = []
    for word in words:
        s += word + sgc.gen("g", stop="\n")
        kept.append(squeezed(s["g"]))
        s += fill(s["g"] + " and more of it") + "\n"
    try:
        parts = shlex.split(s.text())
    except ValueError as error:
        parts = [type(error).__name__, str(error)]
    lines = [shlex.join(shlex.split(each)) for each in kept if "'" not in each]
    s += " ".join(parts[-2:]) + sgc.gen("z", stop="\n")
    return parts, lines, kept


class OutOfStock(Exception):
    pass


class Store:
    def __init__(self) -> None:
        self.stock = {"a": 2}

    def take(self, word: str) -> None:
        if len(word) > 2:
            raise OutOfStock(f"{word} is long")
        if not word:
            raise ValueError("no word")
        self.stock[word] = self.stock.get(word, 0) - 1

    @contextmanager
    def changing(self):
        before = dict(self.stock)
        try:
            yield
        except OutOfStock:
            self.stock = before
            raise


@sgc.function
def in_one_handler(s, orders: list[str]):
    store, failed = Store(), []
    for order in orders:
        s += order + sgc.gen("g", stop="\n")
        try:
            with store.changing():
                for word in s["g"].split(","):
                    store.take(word)
                    store.take(word.strip("'"))
        except (OutOfStock, ValueError) as error:
            failed.append(str(error))
            s += f"Not done ({error})." + sgc.gen("sorry", stop="\n")
    return store.stock, failed


@dataclass(slots=True)
class Task:
    name: str
    after: list[str] = field(default_factory=list)
    days: int = 1


@dataclass(slots=True, frozen=True)
class Mark:
    n: int = 0


@sgc.function
def of_slots(s, words: list[str]):
    tasks = {}
    for word in words:
        s += word + sgc.gen("g", stop="\n")
        after = [each for each in s["g"].split(",") if each in tasks and each < word]
        tasks[word] = Task(word, after, len(s["g"]))
    for task in tasks.values():
        task.days += 1
        try:
            task.note = "x"
        except AttributeError as error:
            s += str(error)
    try:
        Mark(len(tasks)).n = 3
    except AttributeError as error:
        s += type(error).__name__
    calls = []

    @cache
    def end(name: str) -> int:
        calls.append(name)
        return tasks[name].days + max((end(each) for each in tasks[name].after), default=0)

    last = max(map(end, tasks), default=0)
    for task in tasks.values():
        task.days = 0  # what was found stays
    order = list(
        TopologicalSorter({each.name: each.after for each in tasks.values()}).static_order()
    )
    s += f"{last} {[end(each) for each in order]}" + sgc.gen("z", stop="\n")
    return last, calls, order, [repr(each) for each in tasks.values()]


@sgc.function
def of_a_variable_set_later(s, words: list[str]):
    sizes = {word: len(word) for word in words}

    @cache
    def size(word: str) -> int:
        return sizes.get(word, -1)

    first = [size(word) for word in words]
    s += str(first) + sgc.gen("g", stop="\n")
    sizes = dict.fromkeys(s["g"].split(","), 7)
    return first, [size(word) for word in [*words, *sizes]]


class Line(BaseModel):
    price: Decimal = Field(ge=0)


class Invoice(BaseModel):
    issued: date
    wait: timedelta
    seen: datetime | None = None
    lines: list[Line] = []


@sgc.function
def of_dates(s):
    kept = []
    for _ in range(2):
        s += sgc.gen("j", stop="\n")
        try:
            invoice = Invoice.model_validate_json(s["j"])
        except ValidationError as error:
            s += f"{error.error_count()} wrong"
            continue
        kept.append(invoice)
        due = invoice.issued + invoice.wait
        s += f"{due} {sum(each.price for each in invoice.lines)} {invoice.seen}"
    return [each.model_dump_json() for each in kept], [each.issued.year for each in kept]


DATES = (
    '{"issued":"2026-01-31","wait":"P3D"}',
    '{"issued":"2026-02-30","wait":"P3D"}',
    '{"issued":"2026-01-31","wait":5,"seen":"2026-01-01T10:00","lines":[{"price":"3.50"}]}',
    '{"issued":"2026-01-31","wait":"P1D","lines":[{"price":-1}]}',
    "x",
)


def test_a_cached_function_whose_variable_is_set_later_is_refused() -> None:
    with pytest.raises(TraceError, match=r"size\(\) is given a value"):
        tracer.trace(of_a_variable_set_later, is_full=True)


def test_models_with_dates() -> None:
    agree(of_dates, DATES, n=12)


@pytest.mark.parametrize("program", [of_classes, of_texts, of_slots], ids=lambda each: each.name)
def test_as_interpreted(program: Any) -> None:
    agree(program, REPLIES, n=8, words=["x", "y z"])


def test_members_by_their_names() -> None:
    agree(of_members, REPLIES, n=8)


def test_errors_of_several_places_meet_in_their_handler() -> None:
    graph = agree(in_one_handler, REPLIES, n=10, orders=["x", "y"])
    assert sum(node.op == "gen" and node.text("name") == "sorry" for node in graph.nodes()) <= 4


def test_attributes_that_only_init_is_given_are_refused_in_code() -> None:
    from sgc.tracing.pieces.text.classes import NoClass, user_class

    with pytest.raises(NoClass, match=r"WithInit\.seed is given to __init__ alone"):
        user_class(WithInit, is_live=True)


@dataclass
class WithInit:
    name: str
    seed: InitVar[int] = 0


FILLERS = {"very", "really", "just", "so"}


@dataclass
class Terms:
    words: list[str]
    n_made: int = 0

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        self.n_made += 1
        return re.compile("|".join(map(re.escape, sorted(filter(None, self.words)))), re.IGNORECASE)

    def fillers(self) -> str:
        return ", ".join(sorted(FILLERS.intersection(self.words)))

    def is_plain(self) -> bool:
        own = FILLERS & {*self.words}
        return len(own) == 0


@sgc.function
def terms(s, words: list[str]):
    s += sgc.gen("x")
    found, lengths = Terms([*words, s["x"]]), {}
    told = found.pattern.sub("*", f"{s['x']} so a BB")
    found.words.append("x")  # the pattern is what it was
    told += found.pattern.sub("*", "x a")
    lengths |= {word: len(word) for word in found.words}
    s += told + sgc.gen("y")
    longest = max(lengths, key=lengths.__getitem__)
    return told, found.n_made, found.fillers(), found.is_plain(), longest


def test_cached_properties_and_sets_of_constants_are_code():
    agree(terms, (*REPLIES, "so", "very"), words=["really", "b"])


@sgc.function
def spaced(s, q: str):
    s += q + sgc.gen("x")
    return re.sub("b*", "-", s["x"]), re.split(r"\b", s["x"]), re.findall(r"a?(b?)", s["x"])


def test_patterns_that_may_match_the_empty_text_are_code():
    agree(spaced, ("b", "a bb", "", "abba ab"), q="x")
