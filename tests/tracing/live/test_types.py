"""Attributes of objects, lists, dicts and keys whose values have several types: texts or numbers,
tuples of several lengths, members of enumerations. Nothing here relies on the trace check."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import Enum, IntEnum, StrEnum

import pytest
from control_flow import agree
from traced_at_once import live_at_once

import sgc
from sgc.tracing import tracer
from sgc.tracing.pieces.text.library import pythons
from sgc.tracing.tracer import trace

REPLIES = ("", "a", "b", "ab", "a,b", "b,,a", "c,a,b")


class State(Enum):
    OPEN = "open"
    DONE = "done"

    @property
    def is_last(self):
        return self is State.DONE


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Kind(StrEnum):
    BUG = "bug"
    ASK = "ask"


class Task:
    def __init__(self, name):
        self.name, self.state, self.level, self.kind = name, State.OPEN, Level.LOW, None
        self.log = []

    def close(self):
        self.state = State.DONE
        self.log.append((State.DONE, self.name))


@dataclass
class Board:
    tasks: list[Task] = field(default_factory=list)
    counts: Counter = field(default_factory=Counter)
    by_state: dict = field(default_factory=lambda: {state: [] for state in State})


@sgc.function
def states(s):
    board = Board()
    s += "q" + sgc.gen("g", stop="\n")
    for name in s["g"].split(","):
        task = Task(name)
        board.tasks.append(task)
        board.counts[task.state] += 1
    best = max(board.tasks, key=lambda task: len(task.name))
    if "a" in s["g"]:
        best.close()
        board.counts[best.state] += 1
        best.level = Level.HIGH
    if best.state is State.DONE:
        s += "done" + sgc.gen("x", stop="\n")
        best.kind = Kind(s["x"]) if s["x"] in ("bug", "ask") else Kind.ASK
    for task in board.tasks:
        board.by_state[task.state].append(task.name)
        s += f"{task.name} {task.state.value}"
        s += f"{task.level + 1}{task.level.name}"
        s += f"{task.kind}"
        for state, name in task.log:
            s += f"{state.name}{name}"
    for state, names in board.by_state.items():
        s += f"{state.value} {state.is_last} {','.join(names)}"
    for state, n in board.counts.items():
        s += f"{state.name}={n}"
    return [task.name for task in board.tasks if task.state is not State.DONE]


class Records:
    def __init__(self):
        self.items, self.cleaned, self.seen, self.last = [], {}, set(), 0


@sgc.function
def rows(s):
    records = Records()
    s += "q" + sgc.gen("g", stop="\n")
    for word in s["g"].split(","):
        records.items.append(word)
        records.items.append(len(word))
        records.cleaned[word or (len(word), "none")] = word
        records.seen.add((word, len(word)))
        records.last = word
    records.items.append((s["g"], 1.5))
    records.items.append(("one",))
    records.items.append(True)
    if isinstance(records.last, int):
        s += f"int {records.last + 1}"
    for each in records.items:
        if isinstance(each, tuple):
            s += f"tuple {len(each)} {each[0]}"
        elif isinstance(each, bool):
            s += f"bool {each}"
        elif isinstance(each, int):
            s += f"int {each + 1}"
        else:
            s += "text " + each
    for key, word in records.cleaned.items():
        s += f"{key}={word}"
    if (0, "none") in records.cleaned or "a" in records.cleaned:
        s += "found"
    records.last = 2.5 if "b" in s["g"] else 7
    return records.last, (s["g"], 1) in records.seen, len(records.items)


@dataclass
class Point:
    name: str
    at: object = 0
    state: State = State.OPEN


@sgc.function
def points(s):
    s += "q" + sgc.gen("g", stop="\n")
    found = []
    for word in s["g"].split(","):
        found.append(Point(word, word))
        if "a" in word:
            found[-1].at = len(word)
    last = found[-1]
    last.state = State.DONE
    if last in found[:-1]:
        found.remove(last)
    for each in found:
        given = asdict(each)
        s += f"{given['name']} {given['at']}" + given["state"].name
    return found.index(last), found.count(Point("b", "b"))


@pytest.mark.parametrize(
    "program",
    [pytest.param(states, marks=pytest.mark.slow), rows, points],
    ids=lambda each: each.__name__,
)
def test_values_of_several_types_are_as_in_python(program, monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(program, REPLIES, n=8)


class Counts:
    def __init__(self):
        self.by_state = {state: len(state.value) for state in State}
        self.sizes = set()


@sgc.function
def counts(s):
    s += "q" + sgc.gen("g", stop="\n")
    found = Counts()
    found.by_state[State.DONE if "a" in s["g"] else State.OPEN] += 1
    return [found.by_state[state] for state in State]


def test_a_dict_of_all_members_is_the_attributes_own(monkeypatch):
    """The `__init__` that has ended no longer counts as its holder."""
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(counts, REPLIES, n=4)


@sgc.function
def summed(s):
    s += "q" + sgc.gen("g", stop="\n")
    found = Counts()
    for word in s["g"].split(","):
        found.sizes.add(len(word))
        found.sizes.add(len(word) * 0.1)
    return sum(found.sizes)


def test_a_sum_of_a_set_with_floats(monkeypatch):
    """Which depends on the order of the set."""
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(summed, REPLIES, n=8)


@dataclass
class Told:
    kind: object


@sgc.function
def texts_and_members(s):
    s += "q" + sgc.gen("g", stop="\n")
    told = Told(s["g"])
    if "a" in s["g"]:
        told.kind = Kind.BUG
    return str(told.kind)


@sgc.function
def lists_and_texts(s):
    s += "q" + sgc.gen("g", stop="\n")
    told = Told(s["g"])
    if "a" in s["g"]:
        told.kind = [s["g"]]
    return str(told.kind)


@pytest.mark.parametrize("program", [texts_and_members, lists_and_texts], ids=lambda e: e.__name__)
def test_values_of_any_types(program, monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(program, REPLIES, n=8)


def test_a_value_of_the_run_is_no_stand_in_of_pythons() -> None:
    @sgc.function
    def program(s):
        s += sgc.gen("n", regex="[0-9]")
        n = int(s["n"])
        s += "same" if pythons(n) is n else "other"

    texts = [node.get("text") for node in trace(program).nodes() if node.op == "const"]
    assert [each.value for each in texts] == ["same"]


@sgc.function
def of_texts_alone(s, q: str, many: int):
    s += q + sgc.gen("a", max_tokens=4)
    said = s["a"]
    shown = f"{many}. {said}"
    if said == "yes":
        s += "So " + shown + "!"
    return shown


def test_simple_texts_are_nodes_that_tell_what_they_are(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    graph = trace(of_texts_alone, is_full=True)
    codes = [node.text("code") for node in graph.nodes() if node.op == "perform"]
    assert not any("==" in code or "So" in code or ". " in code for code in codes)
    agree(of_texts_alone, ("yes", "no"), graph=graph, q="x", many=3)
