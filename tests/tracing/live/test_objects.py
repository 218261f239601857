"""Objects of which it is known only at run time which they are: chosen, held in several places, and
changed. Nothing here relies on the trace check."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import random_objects
from control_flow import agree, equal_or_refused
from traced_at_once import live_at_once

import sgc
from sgc.tracing import tracer
from sgc.tracing.paths.exploration import Report

REPLIES = random_objects.REPLIES


@dataclass
class Task:
    title: str
    status: str = "todo"
    tries: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass
class Board:
    tasks: list[Task] = field(default_factory=list)

    def add(self, title):
        task = Task(title)
        self.tasks.append(task)
        return task

    def open(self):
        return [task for task in self.tasks if task.status == "todo"]

    def __len__(self):
        return len(self.tasks)

    def __iter__(self):
        return iter(self.tasks)


class Node:
    def __init__(self, thought, parent=None):
        self.thought, self.parent, self.visits, self.children = thought, parent, 0, []

    def add(self, thought):
        child = Node(thought, self)
        self.children.append(child)
        return child

    def backup(self):
        node = self
        while node is not None:
            node.visits += 1
            node = node.parent


@sgc.function
def tasks(s):
    board = Board()
    s += "list" + sgc.gen("list", stop="\n")
    for title in s["list"].split(","):
        board.add(title)
    last = board.tasks[-1]
    for task in board.open():
        s += f"{len(board)} {task.title}" + sgc.gen("out", stop="\n")
        task.tries += 1
        task.notes.append(s["out"])
        if "a" in s["out"]:
            task.status = "done"
    best = max(board.tasks, key=lambda task: len(task.title))
    best.tries += 10
    for task in board:
        s += f"{task.title} {task.status} {task.tries} {'/'.join(task.notes)} {task is last}"
    return len(board.open())


@sgc.function
def tree(s):
    root = Node("")
    for _ in sgc.turns(4):
        node = root
        while node.children:
            node = min(node.children, key=lambda child: child.visits)
            if node.thought == "":
                break
        s += node.thought + sgc.gen("g", stop="\n")
        child = node.add(s["g"])
        child.backup()
    for child in root.children:
        s += f"{child.thought} {child.visits} {child.parent is root}"
    return root.visits


@sgc.function
def last_of_words(s):
    s += "q" + sgc.gen("g", stop="\n")
    found = [Task(word) for word in s["g"].split(",")]
    last = found[-1]
    last.tries += 1
    return last.tries + found[0].tries


def test_a_program_is_traced_with_references_where_it_stops_without():
    agree(last_of_words, REPLIES, n=6)


@sgc.function
def sized(s):
    board = Board([Task("a")])
    s += "q" + sgc.gen("g", stop="\n")
    return f"{len(board)} {s['g']}"


def test_the_check_calls_a_len_of_the_programs_own():
    sized.compile()


def test_objects_of_a_list_are_changed_through_other_lists(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    graph = agree(tasks, REPLIES, n=8)
    assert len(list(graph.nodes())) < 250


def test_objects_that_refer_to_each_other(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(tree, REPLIES, n=8)


@dataclass
class Shelf:
    books: list[str]


@sgc.function
def shared_list(s):
    s += "q" + sgc.gen("g", stop="\n")
    words = [each for each in s["g"].split(",") if each]
    shelf = Shelf(words)
    words.append("mine")
    for word in shelf.books:
        s += word
    return len(shelf.books)


def test_a_list_that_a_variable_goes_on_to_have(monkeypatch):
    monkeypatch.setattr(tracer, "_found", live_at_once)
    agree(shared_list, REPLIES, n=8)


@dataclass
class Stock:
    symbol: str
    n: int = 0


@sgc.function
def stocks(s, q):
    s += "list" + sgc.gen("list", stop="\n")
    found = []
    for each in s["list"].split(","):
        found.append(Stock(each, len(each)))
    best = max(found, key=lambda each: each.n)
    best.n += 1
    s += f"{best.symbol}={best.n}" + sgc.gen("z", stop="\n")
    return best.symbol, [each.n for each in found]


@pytest.mark.slow
def test_an_attribute_may_have_the_name_that_abstract_values_have():
    assert equal_or_refused(stocks, REPLIES)


class Branch:
    def __init__(self, parent: Branch | None = None):
        self.parent = parent
        self.children: list[Branch] = []
        if parent is not None:
            parent.children.append(self)


def grown(depth: int, parent: Branch | None = None) -> Branch:
    made = Branch(parent)
    for _ in range(3 if depth else 0):
        grown(depth - 1, made)
    return made


@sgc.function
def holds_a_tree(s, q: str):
    root, kept = grown(3), []
    s += q + sgc.gen("a", max_tokens=9)
    for word in sorted(s["a"].split(","), key=len):
        kept.append(root)
        s += word + sgc.gen("z", max_tokens=2)
        if s["z"] == "no":
            break
    return len(kept), len(max(root.children, key=lambda each: len(each.children)).children)


def test_objects_that_hold_each_other_are_looked_at_once() -> None:
    report = Report()
    tracer.trace(holds_a_tree, is_full=True, report=report)
    assert report.work < 20_000
