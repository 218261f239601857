"""`cycle`, `count` and `repeat`: by themselves, and beside lists known only at run time."""

from __future__ import annotations

from itertools import count, cycle, islice, repeat

import pytest
from control_flow import agree, equal_or_refused

import sgc

REPLIES = ("a", "skip", "", "more", "b c")


@sgc.function
def by_next(s, k: int):
    ids = count(1)
    who = cycle(["ann", "bob", "cy"])
    out = []
    for _ in range(k):
        name = next(who)
        s += f"{next(ids)} {name}:" + sgc.gen("r", max_tokens=4)
        out.append((name, s["r"]))
        if s["r"] == "skip":
            next(who)
    return out, next(who), next(ids)


@sgc.function
def in_slices(s, k: int, words: str = "x y"):
    ws = cycle(words.split())
    out = [*islice(ws, k)] if k < 0 else [w for w in islice(ws, k)]  # noqa: C416
    for w in islice(ws, 2):
        s += w + sgc.gen("r", max_tokens=4)
    for i, w in enumerate(ws):
        if i > k:
            break
        s += f"{i}" + w + sgc.gen("r", max_tokens=4)
    return out


@sgc.function
def beside_others(s, k: int, words: str = "x y"):
    numbers = count(k, 2)
    for w, i, x in zip(words.split(), numbers, repeat("!"), strict=False):
        s += w + str(i) + x + sgc.gen("r", max_tokens=4)
    for i, w in zip(numbers, ["p", "q"], strict=False):
        s += w + str(i)
    for (i, w), v in zip(enumerate(words.split()), cycle("ab"), strict=False):
        s += w + str(i) + v + sgc.gen("r", max_tokens=4)
    for i, w in zip(range(k), cycle((1, "b")), strict=False):
        s += f"{i}{w}" + sgc.gen("r", max_tokens=4)
    return next(numbers)


@sgc.function
def beside_forks(s, k: int):
    forks = s.fork(k)
    for f, tone in zip(forks, cycle(["kind", "rude"]), strict=False):
        f += tone + sgc.gen("r", max_tokens=4)
    return [f["r"] for f in forks]


@sgc.function
def what_is_left(s, q: str):
    s += q + sgc.gen("a", max_tokens=9)
    items = iter(s["a"].split(" "))
    first = next(items, "")
    for i, x in enumerate(items):  # it counts from 0 although one is taken
        s += f"{i}{x}" + sgc.gen("r", max_tokens=4)
    return first


def test_by_next() -> None:
    agree(by_next, REPLIES, n=4, k=6)


@pytest.mark.slow
def test_in_slices_and_without_items() -> None:
    graph = agree(in_slices, REPLIES, n=4, k=3, words="p q r")
    agree(in_slices, REPLIES, n=6, graph=graph, k=1)


def test_beside_others() -> None:
    graph = agree(beside_others, REPLIES, n=4, k=5)
    agree(beside_others, REPLIES, n=4, graph=graph, k=2, words="p q r s")


def test_beside_a_fork_into_a_number_of_run_time() -> None:
    agree(beside_forks, REPLIES, n=4, k=3)


def test_what_is_left_is_counted_from_nought() -> None:
    agree(what_is_left, REPLIES, n=8, q="x")


def test_a_list_that_grows_while_it_is_cycled_is_refused() -> None:
    @sgc.function
    def growing(s, q: str):
        xs = ["a", "b"]
        ws = cycle(xs)
        s += next(ws) + sgc.gen("r", max_tokens=4)
        xs.append(s["r"])
        s += next(ws) + next(ws) + next(ws) + sgc.gen("t", max_tokens=2)

    assert equal_or_refused(growing, REPLIES) == "refused"
