"""Calls as arguments of methods that ask a model."""

from __future__ import annotations

import pytest
from control_flow import agree

import sgc

REPLIES = ["a,bb,c", "7", "x,7", "2", "no,yes,no", "", "a,a"]


@sgc.function
def judged(s, text: str, n: int = 0):
    s += f"Rate {text} {n}" + sgc.gen("n")
    return len(s["n"])


def parts_of(s, q):
    s += q + sgc.gen("xs")
    return s["xs"].split(",")


class Index:
    def __init__(self, rows):
        self.rows = rows
        self.log = []

    def search(self, query, k):
        self.log.append(query)
        found = [row for row in self.rows if query in row or len(row) > k]
        return found[:k]

    def search_or_fail(self, query):
        return {row: row for row in self.rows}[query]


class Service:
    def __init__(self, index):
        self.index = index
        self.n = 0

    def rerank(self, query, found, bonus=0):
        self.n += 1
        marks = [judged(query, len(x)).ret_value + bonus for x in found]
        best = []
        for x, mark in zip(found, marks, strict=True):
            if mark > 1:
                best.append(x)
            elif mark == 0:
                self.index.log.append("none")
        return best

    def ask(self, s, query):
        found = self.rerank(query, self.index.search(query, 2))
        if not found:
            s += "none"
            return query
        s += query + sgc.gen("answer")
        self.index.rows.append(s["answer"])
        return s["answer"]

    def ask_twice(self, query):
        return self.rerank(
            self.ask_once(query),
            self.rerank(query, self.index.search(query, self.n + 1)),
            bonus=len(self.index.log),
        )

    def ask_once(self, query):
        return query + str(judged(query, self.n).ret_value)


@sgc.function
def asks(s, q: str):
    service = Service(Index(parts_of(s, q)))
    answers = [service.ask(s, x) for x in parts_of(s, "q")]
    return answers, service.n, service.index.log


@sgc.function
def asks_inside(s, q: str):
    service = Service(Index(parts_of(s, q)))
    for x in parts_of(s, "q"):
        s += str(service.ask_twice(x))
    s += str(service.index.log) + str(service.n)


@sgc.function
def fails_first(s, q: str):
    service = Service(Index(parts_of(s, q)))
    for x in parts_of(s, "q"):
        try:
            s += str(service.rerank(x, service.index.search_or_fail(x)))
        except KeyError as error:
            s += f"no {error}"
    s += str(service.n)


@sgc.function
def holds_a_method(s, q: str):
    service = Service(Index(parts_of(s, q)))
    again = service.rerank
    for x in parts_of(s, "q"):
        s += str(again(x, service.index.search(x, 1)))
    s += str(service.n)


@pytest.mark.parametrize(
    "program", [asks, asks_inside, fails_first, holds_a_method], ids=lambda each: each.name
)
def test_runs_are_as_interpreted(program):
    graph = agree(program, REPLIES, q="a")
    assert not [node for node in graph.nodes() if node.op == "deopt"]
