"""Code that changes only objects that it has made, or is given parts of others only as keys."""

from __future__ import annotations

import ast
import itertools
import random
from collections import Counter, defaultdict
from typing import Any

import pytest
from control_flow import agree

import sgc
from sgc.tracing.pieces.changes import changed_names, changes_outside, made_inside, stored_names
from sgc.tracing.tracer import trace

REPLIES = ("a b", "b", "", "c a b a")
RANKS = ["a", "b", "c"]


def marked(secret: str, guess: str) -> str:
    marks, left = ["-"] * len(secret), []
    for i, (x, y) in enumerate(zip(secret, guess, strict=False)):
        if x == y:
            marks[i] = "G"
        else:
            left.append(x)
    return "".join(marks) + "".join(sorted(left))


def dealt(seed: int) -> list[str]:
    deck = RANKS * 2
    random.Random(seed).shuffle(deck)
    return deck[:2]


class Graph:
    def __init__(self) -> None:
        self.edges: dict[str, list[str]] = defaultdict(list)

    def add(self, line: str) -> bool:
        head, *tails = line.split(" ")
        self.edges[head].extend(tails)
        return bool(tails)

    def walk(self, start: str) -> Any:
        seen = {start}

        def visit(node: str) -> Any:
            for tail in self.edges.get(node, []):
                if tail not in seen:
                    seen.add(tail)
                    yield tail
                    yield from visit(tail)

        yield from visit(start)


def walked(text: str) -> Any:
    graph = Graph()
    added = [graph.add(line) for line in text.split(",")]
    return sum(added), list(graph.walk("a"))


@sgc.function
def games(s, q: str):
    s += q + sgc.gen("a", max_tokens=4)
    text = s["a"]
    s += marked("abc", text) + " ".join(dealt(len(text))) + str(walked(text))
    return random.Random(len(text)).choice(sorted(text.split() or ["x"], key=len)[:2])


@sgc.function
def counts(s, q: str, rows: list[dict[str, str]]):
    by_first = defaultdict(list)
    found = Counter()
    for row in rows:
        by_first[row["text"][:1].lower()].append(len(row["text"]))
        found.update(row["text"].split())
    s += q + sgc.gen("a", max_tokens=2)
    return found["a"], dict(by_first), s["a"]


@sgc.function
def pairs(s, xs: list[str]):
    for first, second in itertools.combinations(xs, 2):
        s += f"{first}{second}" + sgc.gen("a", max_tokens=2)


def test_code_that_makes_what_it_changes() -> None:
    agree(games, REPLIES, n=3, q="x")


def test_parts_that_are_keys() -> None:
    agree(counts, REPLIES, n=3, q="x", rows=[{"text": "a b"}, {"text": "B"}, {"text": ""}])


def test_a_loop_over_combinations() -> None:
    agree(pairs, REPLIES, n=3, xs=["a", "b", "c"])
    assert sum(node.op == "gen" for node in trace(pairs).nodes()) == 1


def _function(text: str) -> ast.FunctionDef:
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    return node


@pytest.mark.parametrize(
    ("body", "is_outside"),
    [
        ("a = [x]; a.append(1)", False),
        ("a, b = [x], {y: z}; a.append(1); b.clear()", False),
        ("a = [0] * n; a[0] = 1", False),
        ("a = [x] + y; a.sort()", False),
        ("sorted(x).pop()", False),
        ("a = [x]; a[0].append(1)", True),
        ("a = [x]; b = a[0]; b.append(1)", True),
        ("a = [x]; a = y; a.append(1)", True),
        ("a, b = y; a.append(1)", True),
        ("a, *b = [x], y, z; a.append(1)", True),
        ("list(x).pop().append(1)", True),
        ("n * x; x.append(1)", True),
        ("random.shuffle(x)", True),
        ("a = n * x; a.append(1)", True),
    ],
)
def test_what_is_changed_outside(body: str, is_outside: bool) -> None:
    assert changes_outside(_function(f"def f(x, y, z, n):\n    {body}"), False) is is_outside


def test_names_of_new_objects_and_of_parts_of_keys() -> None:
    assert made_inside(ast.parse("a, b = [x], 2\nc = sorted(y)\nd = e = {}")) == set("abcde")
    assert changed_names(ast.parse("Random(7).choice(xs)"), {"xs"}) == set()
    assert changed_names(ast.parse("rng.shuffle(xs)"), {"rng", "xs"}) == {"rng", "xs"}
    assert stored_names(ast.parse("d[r['n'].lower(), t.x] = i")) == {"d", "i"}
    assert stored_names(ast.parse("d.add(r['n'])")) == {"d"}
    assert stored_names(ast.parse("d[f(r)] = 1")) == {"d", "f", "r"}
