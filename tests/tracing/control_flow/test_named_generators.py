"""Generator expressions that a variable has, until they are used up."""

from __future__ import annotations

from typing import Any

import pytest
from around import around_failing
from control_flow import agree_saved, equal_or_refused

import sgc

POOL = ("a b ab", "b", "", "ca cb ab b", "a a b b a", "bb ba a")


def in_a_loop(s: Any, words: list[str]) -> Any:
    long = (word.upper() for word in words if len(word) > 1)
    n = 0
    for word in long:
        n += 1
        s += f"{n}. {word}:" + sgc.gen("x", max_tokens=2) + "\n"
    return n


def of_pairs(s: Any, words: list[str]) -> Any:
    both = (x + y for x in words for y in words if x < y)
    found = [each for each in both if len(each) > 2]
    s += f"{found}"
    return found


def in_a_sum(s: Any, words: list[str]) -> Any:
    sizes = (len(word) for word in words)
    total = sum(sizes)
    s += f"{total}"
    return total


def later_in_its_block(s: Any, words: list[str]) -> Any:
    mark = "."
    shouted = (word.upper() + mark for word in words)
    mark = "!" if len(words) > 2 else "?"
    s += mark
    if mark == "!":
        s += ", ".join(shouted)
    return mark


def in_each_turn(s: Any, words: list[str]) -> Any:
    found = []
    for word in words:
        others = (other for other in words if other != word)
        found.append(" ".join(sorted(others)))
        s += "."
    return found


def of_a_changed_list(s: Any, words: list[str]) -> Any:
    own = ["x"]
    later = (word * 2 for word in own)
    own.append("y")
    s += "".join(later)
    own = []
    return own


EQUAL = (
    in_a_loop, of_pairs, in_a_sum, later_in_its_block, in_each_turn,
    of_a_changed_list,
)  # fmt: skip


def used_twice(s: Any, words: list[str]) -> Any:
    sizes = (len(word) for word in words)
    s += f"{sum(sizes)} {sum(sizes)}"
    return None


def used_in_a_loop(s: Any, words: list[str]) -> Any:
    sizes = (word for word in words)
    for _ in range(2):
        s += "+".join(sizes) + ";"
    return None


def used_in_a_while(s: Any, words: list[str]) -> Any:
    n = 0
    each = (word for word in words)
    while n < 3 and any(word != "b" for word in each):
        n += 1
        s += "."
    return n


def set_before_a_loop(s: Any, words: list[str]) -> Any:
    for n in range(2):
        if n == 0:
            each = (word for word in words)
        s += f"{n}" + "".join(each) + "."
    return None


def taken_by_hand(s: Any, words: list[str]) -> Any:
    each = (word for word in words)
    first = next(each, "none")
    s += first
    return first


def in_a_function(s: Any, words: list[str]) -> Any:
    each = (word for word in words)

    def joined() -> str:
        return "-".join(each)

    s += joined() + joined()
    return None


def failing(s: Any, words: list[str]) -> Any:
    each = (int(word) for word in words)
    s += "before"
    return sum(each)


def of_a_dict_that_grows(s: Any, words: list[str]) -> Any:
    sizes = {word: len(word) for word in words}
    keys = (key for key in sizes)
    sizes["new"] = 0
    try:
        s += ",".join(keys)
    except RuntimeError:
        s += "it changed"
    return None


def of_a_dict_that_grows_by_another_name(s: Any, words: list[str]) -> Any:
    sizes = {word: len(word) for word in words}
    same = sizes
    keys = (key for key in sizes)
    if words:
        same["new"] = 0
    try:
        s += ",".join(keys)
    except RuntimeError:
        s += "it changed"
    return None


def grow(sizes: dict[str, int]) -> None:
    sizes["new"] = 0


def of_a_dict_that_a_helper_grows(s: Any, words: list[str]) -> Any:
    sizes = {word: len(word) for word in words}
    keys = (key for key in sizes)
    grow(sizes)
    try:
        s += ",".join(keys)
    except RuntimeError:
        s += "it changed"
    return None


OTHERS = (
    of_a_dict_that_a_helper_grows, of_a_dict_that_grows, of_a_dict_that_grows_by_another_name,
    used_in_a_while, used_twice, used_in_a_loop, set_before_a_loop, taken_by_hand,
    in_a_function, failing,
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("body", EQUAL)
def test_they_are_loops(body: Any) -> None:
    agree_saved(around_failing(body), POOL, n=12, q="x")


@pytest.mark.sweep
@pytest.mark.parametrize("body", OTHERS)
def test_others_are_equal_or_refused(body: Any) -> None:
    equal_or_refused(around_failing(body), POOL)
