"""Objects that tracing knows, since they hold a stream or ask: code has their attributes."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import pytest
from control_flow import agree
from traced_at_once import live_at_once

import sgc
from sgc.tracing import tracer

REPLIES = ("b", "a", "cc", "")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_found", live_at_once)


class Agent:
    def __init__(self, s: Any, width: int):
        self.s, self.width = s, width
        self.seen: set[str] = set()
        self.asked = 0

    def ask(self, x: str) -> list[str]:
        found = []
        for _ in range(2):
            self.s += x + sgc.gen("t", max_tokens=4)
            self.asked += 1
            if self.s["t"] in self.seen:
                continue
            self.seen.add(self.s["t"])
            found.append(self.s["t"] + x)
        return found


@sgc.function
def searches(s, q: str):
    agent, beam, level = Agent(s, 2), [q], 0
    while level < 2:
        found = [each for x in beam for each in agent.ask(x)]
        if not found:
            break
        level += 1
        beam = heapq.nlargest(agent.width, found, key=lambda each: (len(each), each))
    told = {"asked": agent.asked, "beam": [*beam], "seen": sorted(agent.seen)}
    return told, [agent.width for _ in beam], sum(len(x) < agent.width for x in beam)


@sgc.function
def rated(s, x: str):
    s += x + sgc.gen("g", max_tokens=2)
    return len(s["g"])


@dataclass
class Node:
    word: str
    depth: int = 0


class Search:
    def __init__(self, width: int):
        self.width, self.asked = width, 0

    def children(self, node: Node) -> list[Node]:
        found = []
        for way in "xy":
            self.asked += 1
            found.append(Node(node.word + way, node.depth + rated(node.word + way).ret_value))
        return found

    def level(self, beam: list[Node]) -> list[Node]:
        """Calls a method that asks, so it is no code either."""
        pool = [child for node in beam for child in self.children(node)]
        return sorted(pool, key=lambda node: (node.depth, node.word))[: self.width]


@sgc.function
def climbs(s, q: str, height: int):
    search, beam = Search(2), [Node(q)]
    for _ in range(height):
        beam = search.level(beam)
    s += f"{search.asked} asked" + sgc.gen("x", max_tokens=2)
    return [(node.word, node.depth) for node in beam], search.asked


def test_code_has_the_attributes_of_objects_that_hold_a_stream():
    agree(searches, REPLIES, q="q")


def test_methods_that_call_methods_that_ask_are_traced():
    agree(climbs, REPLIES, q="q", height=2)
