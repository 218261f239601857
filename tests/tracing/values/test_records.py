"""Objects of the program's classes in lists known only at run time, and in code that is data."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import pytest
from control_flow import agree, agree_or_refuse

import sgc
from sgc.errors import TraceError
from sgc.programs.program import Program
from sgc.tracing.tracer import trace

REPLIES = ("a", "b", "a,b", "b,a,cc", "", "7", "12", "yes", "no")


class Event(NamedTuple):
    year: int
    what: str
    certain: bool = True


@dataclass
class Note:
    text: str
    points: int = 0
    tags: list[str] = field(default_factory=list)

    @property
    def is_long(self) -> bool:
        return len(self.text) > 1

    def line(self, sign: str = "-") -> str:
        return f"{sign} {self.text} ({self.points})"

    def __str__(self) -> str:
        return f"<{self.text}>"


@dataclass(frozen=True, order=True)
class Mark:
    points: int
    text: str = "?"


@dataclass
class Share:
    """Its attributes have the names of methods of lists and of the tracer's own values."""

    symbol: str
    count: int
    session: str = "day"
    items: list[str] = field(default_factory=list)

    def index(self) -> str:
        return f"{self.symbol}{self.count}{self.session}"


class Tally:
    """Counts texts."""

    def __init__(self, start: int = 0):
        self.n = start
        self.seen: list[str] = []

    def add(self, text: str) -> None:
        self.seen.append(text)
        self.n += len(text)

    def longest(self) -> str:
        return max(self.seen, key=len, default="none")


@sgc.function
def ask(s, x: str):
    s += x + sgc.gen("y", max_tokens=4)
    return s["y"]


def events_of(text: str) -> list[Event]:
    found = []
    for word in text.split(","):
        if word:
            found.append(Event(len(word), word, not word.startswith("b")))
    return found


@sgc.function
def named_tuples(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    events = events_of(s["a"])
    events.sort()
    for year, what, certain in events:
        s += f"{year} {what} {'sure' if certain else 'maybe'};"
    first = next((e.year for e in events if e.certain), None)
    if events:
        s += sgc.gen("more", max_tokens=2) + max(events).what
    return first, len(events)


@sgc.function
def dataclasses_that_grow(s, xs: list[str]):
    notes: list[Note] = []
    for x in xs:
        s += x + sgc.gen("n", max_tokens=3)
        notes.append(Note(s["n"], len(s["n"])))
    for note in notes:
        s += note.line() + ("!" if note.is_long else "") + f"{note}"
    best = max(notes, key=lambda note: note.points, default=None)
    if best is not None:
        s += best.text + sgc.gen("z", max_tokens=2)
        return asdict(best)
    return None


@sgc.function
def ordered(s, xs: list[str]):
    marks = []
    for x in xs:
        y = ask(x).ret_value
        marks.append(Mark(len(y), y))
    if not marks:
        return "none"
    worst = min(marks)
    s += f"{worst.points}{worst.text}" + sgc.gen("z", max_tokens=2)
    return [m.text for m in sorted(marks, reverse=True)]


@sgc.function
def made_by_code(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    notes = [Note(word, len(word)) for word in s["a"].split(",") if word]
    s += "\n".join(f"{n}. {note.text}" for n, note in enumerate(notes, 1))
    total = sum(note.points for note in notes)
    if total > 2:
        s += sgc.gen("b", max_tokens=2)
    return total, any(note.is_long for note in notes)


@sgc.function
def replaced(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    found = {}
    for word in s["a"].split(","):
        mark = Mark(len(word), word)
        if re.fullmatch("[a-z]", mark.text):
            mark = replace(mark, text=mark.text.upper())
        before = found.get(mark.points)
        if before is None or before < mark:
            found[mark.points] = mark
    for mark in sorted(found.values()):
        s += f"{mark.text}:{mark.points} "
    s += sgc.gen("z", max_tokens=2)
    return len(found)


@sgc.function
def methods_that_ask(s, xs: list[str]):
    notes = [Note(x) for x in xs]
    out = []
    for note in notes:
        y = ask(note.line("*")).ret_value
        out.append(replace(note, points=len(y)))
    s += ", ".join(note.text for note in out if note.points) + sgc.gen("z", max_tokens=2)
    return sum(note.points for note in out)


@sgc.function
def an_object_with_state(s, xs: list[str]):
    tally = Tally(1)
    for x in xs:
        tally.add(ask(x).ret_value)
    s += f"{tally.n} {tally.longest()}" + sgc.gen("z", max_tokens=2)
    return tally.n, tally.seen


@sgc.function
def attributes_named_like_ours(s, xs: list[str]):
    shares = []
    for x in xs:
        y = ask(x).ret_value
        shares.append(Share(y, len(y), items=[x]))
    for share in shares:
        s += f"{share.symbol} {share.count} {share.index()} {'; '.join(share.items)} {share}"
    known = Share("q", 2)
    return known in shares, [share.session for share in shares], known.symbol


OF_TEXTS = (named_tuples, made_by_code, replaced)
OF_LISTS = (
    dataclasses_that_grow, ordered, methods_that_ask, an_object_with_state,
    attributes_named_like_ours,
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("program", OF_TEXTS, ids=lambda program: program.name)
def test_they_are_the_same_compiled(program: Any) -> None:
    agree(program, REPLIES, n=24, q="x")


@pytest.mark.sweep
@pytest.mark.parametrize("program", OF_LISTS, ids=lambda program: program.name)
def test_lists_of_them_are_the_same_compiled(program: Any) -> None:
    graph = agree(program, REPLIES, xs=["x", "a,b", "q", "zz"])
    agree(program, REPLIES, graph=graph, xs=["x"])
    assert graph.n_nodes < 400  # they do not grow with the turns


def refused(program: Any) -> str:
    with pytest.raises(TraceError) as stopped:
        trace(sgc.function(program), is_full=True)
    return str(stopped.value)


def as_in_python(program: Any) -> None:
    """Asserts that a program is compiled, with references, and does what it does interpreted."""
    function = sgc.function(program)
    compiled = Program(trace(function, is_full=True))
    agree_or_refuse(function, compiled, REPLIES, 6, xs=["x", "a,b"])


@pytest.mark.slow
def test_a_list_of_an_object_of_a_list_is_not_changed():
    def program(s, xs: list[str]):
        notes = [Note(x) for x in xs]
        for note in notes:
            note.tags.append(ask(note.text).ret_value)
        return [note.tags for note in notes]

    refused(program)


def test_the_hash_of_a_text_is_no_code():
    def program(s, q: str):
        s += q + sgc.gen("a", max_tokens=3)
        return hash(s["a"]) == 1

    refused(program)


def known_or_none(name: str, text: str) -> str | None:
    return next((word for word in text.split(",") if word.startswith(name)), None)


@sgc.function
def sets_attributes_by_name(s, xs: list[str]):
    note = Note("?")
    for x in xs:
        s += x + sgc.gen("n", max_tokens=4)
        for name in ("text", "points"):
            value = known_or_none(x, s["n"])
            if value is not None:
                setattr(note, name, value)
    s += f"{note.text} {note.points}" + sgc.gen("z", max_tokens=2)
    return note.text, getattr(note, "points")  # noqa: B009


@sgc.function
def calls_methods_by_name(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    tally = Tally()
    for word in s["a"].split(","):
        getattr(tally, "add" if word else "longest")(*[word] * bool(word))
    s += str(tally.n) + sgc.gen("z", max_tokens=2)
    return tally.n


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("program", "given"),
    [
        (calls_methods_by_name, {"q": "x"}),
        (sets_attributes_by_name, {"xs": ["a", "b", "c"]}),
    ],
    ids=["getattr", "setattr"],
)
def test_an_object_is_changed_by_name_or_refused(program: Any, given: dict[str, Any]) -> None:
    try:
        trace(program, is_full=True)
    except TraceError:
        return  # the interpreter runs it
    agree(program, REPLIES, n=16, **given)


@dataclass
class Rated:
    text: str
    points: int = 1
    scale = 10

    def shown(self) -> str:
        return f"{self.text} {self.points * self.scale}"


@sgc.function
def rated(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    found = [Rated(word) for word in sorted(s["a"].split(","), key=len)]
    s += "; ".join(each.shown() for each in found) + sgc.gen("z", max_tokens=2)
    return max(found, key=lambda each: len(each.text)).shown()


@pytest.mark.slow
def test_attributes_of_a_class_have_their_present_values(monkeypatch):
    agree(rated, REPLIES, n=8, q="x")
    monkeypatch.setattr(Rated, "scale", 7)
    agree(rated, REPLIES, n=8, q="x")
    monkeypatch.setattr(Rated, "shown", lambda self: self.text)
    try:
        trace(rated, is_full=True)
    except TraceError:
        return  # the interpreter runs it
    agree(rated, REPLIES, n=8, q="x")
