"""Code that changes only objects that it has made, or is given parts of others only as keys."""

from __future__ import annotations

import ast
import itertools
import random
import re
from collections import defaultdict
from typing import Any

import pytest
from control_flow import agree
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.tracing.pieces.effects.changes import (
    changed_names,
    changed_roots,
    changes_outside,
    made_inside,
)
from sgc.tracing.pieces.effects.holds import stored_names
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
    for row in rows:
        by_first[row["text"][:1].lower()].append(len(row["text"]))
    s += q + sgc.gen("a", max_tokens=2)
    return dict(by_first), s["a"]


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
        ("a = [x] + y; a.sort()", True),  # y might add itself
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
    assert changes_outside(_function(f"def f(x, y, z, n):\n    {body}"), ()) is is_outside


def test_names_of_new_objects_and_of_parts_of_keys() -> None:
    assert made_inside(ast.parse("a, b = [x], 2\nc = sorted(y)\nd = e = {}")) == set("abcde")
    assert changed_names(ast.parse("Random(7).choice(xs)"), {"xs"}) == set()
    assert changed_names(ast.parse("rng.shuffle(xs)"), {"rng", "xs"}) == {"rng", "xs"}
    assert stored_names(ast.parse("d[r['n'].lower(), t.x] = i")) == {"d", "i"}
    assert stored_names(ast.parse("d.add(r['n'])")) == {"d"}
    assert stored_names(ast.parse("d[f(r)] = 1")) == {"d", "f", "r"}
    assert stored_names(ast.parse("d |= {'k' for x in r.values() if x in y}")) == set()
    assert stored_names(ast.parse("d |= {x for x in r.values()}")) == {"r", "x"}
    assert stored_names(ast.parse("d |= {'k' for x in r if f(x, y)}")) == {"f", "r", "x", "y"}


class Notes:
    def __init__(self) -> None:
        self.xs: list[str] = []

    def extend(self, xs: list[str], text: str) -> None:
        self.xs = xs if re.findall(r"score (\d+)", text) else [text]

    def list(self) -> list[str]:
        return self.xs


def noted(notes: Notes, text: str) -> int:
    xs = notes.list()
    if re.findall(r"score (\d+)", text):
        xs.append("y")
    return len(xs)


@sgc.function
def longest(s, q: str):
    s += q + sgc.gen("a", max_tokens=4) + sgc.gen("b", max_tokens=4)
    xs, ys = [s["a"]], [s["b"]]
    best = max(xs, ys, key=lambda v: len(re.findall(r"score (\d+)", v[0])))
    ys.append("?")
    s += " ".join(best)
    return best


@sgc.function
def extended(s, q: str):
    s += q + sgc.gen("a", max_tokens=4)
    xs, box = ["1", s["a"]], Notes()
    box.extend(xs, s["a"])
    xs.append("2")
    s += " ".join(box.xs)
    return len(box.xs)


@sgc.function
def listed(s, q: str):
    notes = Notes()
    s += q + sgc.gen("a", max_tokens=4)
    s += str(noted(notes, s["a"]))
    return len(notes.xs)


@sgc.function
def numbered(s, q: str):
    s += q + sgc.gen("a", max_tokens=8)
    sections = defaultdict(list)
    for kind in re.findall(r"score (\d+)", s["a"]):
        sections[kind].append(f"{len(sections)}. " + str(s["a"]).upper())
    for kind, lines in sorted(sections.items()):
        s += f"{kind}: {', '.join(lines)}\n"
    return len(sections)


@sgc.function
def drafted(s, q: str):
    drafts = [Notes(), Notes()]
    for d in drafts:
        s += q + sgc.gen("a", max_tokens=4)
        d.xs = [s["a"]]
    best = max(drafts, key=lambda d: len(re.findall(r"score (\d+)", d.xs[0])))
    s += best.xs[0]
    return best.xs[0]


@pytest.mark.parametrize(
    "program", one_in(3, [longest, extended, listed, numbered, drafted]), ids=lambda each: each.name
)
def test_methods_and_functions_of_such_names_may_give_what_they_are_given(program) -> None:
    """Right, or refused; the replies are none that the trace check tries."""
    replies = ("score 7", "score 3 score 9", "a b", "")
    try:
        graph = trace(program, is_full=True)
    except TraceError:
        return
    agree(program, replies, n=8, graph=graph, q="x")


WRITTEN = {
    "out = io.StringIO()\nw = csv.writer(out)\nw.writerow(r)": set(),
    "out = StringIO()\ncsv.DictWriter(out, n).writerows(r)": set(),
    "csv.writer(io.StringIO()).writerow(r)": set(),
    "w = csv.writer(f)\nw.writerow(r)": {"w"},
    "csv.writer(f).writerow(r)": {"f"},
    "out = io.StringIO()\nw = csv.writer(out)\nw = csv.writer(f)\nw.writerow(r)": {"w"},
    "out = io.StringIO()\nout = f\nw = csv.writer(out)\nw.writerow(r)": {"w"},
    "out = io.StringIO()\nw = my.writer(out)\nw.writerow(r)": {"w"},
}


@pytest.mark.parametrize("source", WRITTEN)
def test_a_writer_changes_its_file(source):
    tree = ast.parse(source)
    made = made_inside(tree)
    assert {root for root in changed_roots(tree, made) if root not in made} == WRITTEN[source]
