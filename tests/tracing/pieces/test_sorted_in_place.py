"""Lists that are sorted while others hold their items."""

from __future__ import annotations

from typing import Any

import pytest
from around import around
from control_flow import agree_saved, equal_or_refused

import sgc

POOL = ("a b ab", "b", "", "ca cb ab b", "a a b b a", "bb ba a")


def by_a_key(s: Any, words: list[str]) -> Any:
    rows = []
    for n in range(3):
        s += "word" + sgc.gen("x", max_tokens=2)
        row = {"n": n, "x": s["x"]}
        rows.append(row)
    rows.sort(key=lambda each: (len(each["x"]), each["x"]))
    s += ", ".join(f"{each['n']}{each['x']}" for each in rows) + str(row)
    return rows, row


def in_a_loop(s: Any, words: list[str]) -> Any:
    pairs = []
    for word in words:
        pair = [word, len(word)]
        pairs.append(pair)
    pairs.sort(key=lambda each: (-each[1], each[0]))
    pairs.reverse()
    s += f"{pairs}"
    return pairs


def of_two_lists(s: Any, words: list[str]) -> Any:
    first = {"x": s["a"]}
    rows, others = [first, {"x": "b"}], [first]
    rows.sort(key=lambda each: each["x"])
    s += f"{rows} {others}"
    return rows, others


EQUAL = (by_a_key, in_a_loop, of_two_lists)


def changed_later(s: Any, words: list[str]) -> Any:
    first = {"x": s["a"]}
    rows = [first, {"x": "b"}]
    rows.sort(key=lambda each: each["x"])
    first["y"] = "new"
    s += f"{rows}"
    return rows


def changed_through_the_list(s: Any, words: list[str]) -> Any:
    first = {"x": s["a"]}
    rows = [first, {"x": "b"}]
    rows.sort(key=lambda each: each["x"])
    rows[0]["y"] = "new"
    s += f"{rows} {first}"
    return rows


def with_an_alias(s: Any, words: list[str]) -> Any:
    rows = [{"x": s["a"]}, {"x": "b"}]
    others = rows
    rows.sort(key=lambda each: each["x"])
    s += f"{others}"
    return others


def with_a_key_that_changes(s: Any, words: list[str]) -> Any:
    first = {"x": s["a"], "n": 0}
    rows = [first, {"x": "b", "n": 0}]
    rows.sort(key=lambda each: each.update(n=1) or each["x"])
    s += f"{rows} {first}"
    return rows


OTHERS = (changed_later, changed_through_the_list, with_an_alias, with_a_key_that_changes)


@pytest.mark.sweep
@pytest.mark.parametrize("body", EQUAL)
def test_they_are_sorted(body: Any) -> None:
    agree_saved(around(body), POOL, n=12, q="x")


@pytest.mark.parametrize("body", OTHERS)
def test_others_are_equal_or_refused(body: Any) -> None:
    equal_or_refused(around(body), POOL)
