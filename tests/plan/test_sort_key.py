"""Rows sorted by their keys are in depth-first order of their prompts."""

from __future__ import annotations

import random
from itertools import pairwise

import sgc
from sgc.planning.known import Reader
from sgc.planning.sort_key import MAX_CHARS, SortKeys
from sgc.planning.tree import common_chars, depth_first


@sgc.function
def about(s, system: str, document: str, question: str):
    s += system + "\n" + document + "\n" + question
    s += sgc.gen("a", max_tokens=2)


def test_neighbours_share_as_much_as_in_the_whole_plan():
    """Of documents that are long, or go on with one another, too."""
    draw = random.Random(5)
    base = "".join(draw.choice("ab c") for _ in range(5000))
    documents = [base[:n] + f" ends {n % 7}" for n in (0, 20, 70, 300, 300, 1100, 1101, 4500)]
    rows = [
        {"system": "s" * (1 + n % 2), "document": draw.choice(documents), "question": f"{n}?"}
        for n in range(300)
    ]
    draw.shuffle(rows)
    graph = about.compile(check=False).graph
    reader, keys = Reader(graph, 128), SortKeys(graph)
    prompts = [reader.read(row).prompts[0] for row in rows]

    def shared(order: list[int]) -> int:
        return sum(common_chars(prompts[a], prompts[b]) for a, b in pairwise(order))

    by_key = sorted(range(len(rows)), key=lambda n: keys.of(rows[n]))
    best, given = shared(depth_first(prompts)), shared([*range(len(rows))])
    assert shared(by_key) >= 0.99 * best > 2 * given


def test_keys_are_short_whatever_rows_hold():
    keys = SortKeys(about.compile(check=False).graph)
    row = {"system": "s" * 10_000, "document": "d\0" * 10_000, "question": "\ud800"}
    assert len(keys.of(row)) <= MAX_CHARS
    assert keys.of(row) == keys.of(dict(row)) != keys.of({**row, "document": "e"})
    assert keys.of({}) != keys.of(row)
