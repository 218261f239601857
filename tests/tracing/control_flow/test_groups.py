"""Loops over `itertools.groupby` of lists known only at run time."""

from __future__ import annotations

import itertools
from itertools import groupby
from typing import Any

import pytest
from around import around_failing
from control_flow import agree_saved, equal_or_refused

import sgc

POOL = ("a b ab", "b", "", "ca cb ab b", "a a b b a", "bb ba a")
KINDS = ("a", "b", "c")


def by_first(s: Any, words: list[str]) -> Any:
    found = {}
    for first, group in groupby(sorted(words), key=lambda word: word[:1]):
        members = list(group)
        s += f"{first}: {', '.join(members)} ({len(members)})\n"
        found[first] = len(members)
    return found


def of_rows(s: Any, words: list[str]) -> Any:
    rows = []
    for n, word in enumerate(words):
        rows.append((len(word), word, n))
    lines = []
    for size, group in itertools.groupby(rows, key=lambda row: row[0]):
        group = list(group)
        first, *others = group
        lines.append(f"{size}: {first[1]}" + (f" and {len(others)} more" if others else ""))
        s += lines[-1]
    return lines


def sorted_before(s: Any, words: list[str]) -> Any:
    rows = [word.split("b") for word in words]
    ordered = sorted(rows, key=lambda row: len(row[0]))
    for start, group in groupby(ordered, key=lambda other: other[0]):
        s += f"{start}: " + "; ".join(str(len(row)) for row in group) + "\n"
    return ordered


def of_equal_items(s: Any, words: list[str]) -> Any:
    runs = []
    for word, same in groupby(words):
        runs.append((word, sum(1 for _ in same)))
    s += f"{runs}"
    return runs


def with_a_request_each(s: Any, words: list[str]) -> Any:
    for size, group in groupby(words, key=len):
        for word in group:
            s += f"{size} {word}:" + sgc.gen("x", max_tokens=2)
    return len(words)


def in_a_comprehension(s: Any, words: list[str]) -> Any:
    found = {size: [*group] for size, group in groupby(sorted(words, key=len), key=len)}
    s += f"{found}"
    return found


def left_early(s: Any, words: list[str]) -> Any:
    for size, group in groupby(words, key=len):
        if size > 1:
            s += "long"
            break
        s += "".join(group)
    return None


def the_keys_alone(s: Any, words: list[str]) -> Any:
    found = []
    for word, _ in groupby(sorted(words)):
        found.append(word)
    s += f"{found}"
    return found


EQUAL = (
    the_keys_alone,
    by_first, of_rows, sorted_before, of_equal_items, with_a_request_each, in_a_comprehension,
    left_early,
)  # fmt: skip


def a_key_that_fails(s: Any, words: list[str]) -> Any:
    for place, group in groupby(words, key=KINDS.index):
        s += f"{place}: " + ", ".join(group)
    return None


def a_key_that_fails_late(s: Any, words: list[str]) -> Any:
    rows = [word.split("b") for word in words]
    for start, group in groupby(rows, key=lambda row: row[1]):
        s += f"{start}: {len(list(group))}"
    return None


def a_group_is_used_twice(s: Any, words: list[str]) -> Any:
    for size, group in groupby(words, key=len):
        s += f"{size}: {len(list(group))} {len(list(group))}"  # noqa: B031
    return None


def a_group_is_used_later(s: Any, words: list[str]) -> Any:
    kept = []
    for size, group in groupby(words, key=len):
        kept.append(group)
        s += f"{size}"
    return [list(group) for group in kept]


def a_part_of_a_group(s: Any, words: list[str]) -> Any:
    for size, group in groupby(words, key=len):
        s += f"{size}: {next(group)} {list(group)}"  # noqa: B031
    return None


def a_group_in_a_loop(s: Any, words: list[str]) -> Any:
    for size, group in groupby(words, key=len):
        for _ in range(2):
            s += f"{size}: {','.join(group)};"  # noqa: B031
    return None


def after_the_loop(s: Any, words: list[str]) -> Any:
    group = iter(())
    for size, group in groupby(words, key=len):
        s += f"{size}"
        if size > 1:
            break
    return list(group)


def while_it_grows(s: Any, words: list[str]) -> Any:
    own = list(words)
    for size, group in groupby(own, key=len):
        s += f"{size}: {','.join(group)};"
        if len(own) < 9:
            own.append("aaa")
    return own


def groups_of_its_own(s: Any, words: list[str]) -> Any:
    for size, group in own.groupby(words, len):
        s += f"{size}: {','.join(group)}"
    return None


class Own:
    """Has a method of that name, whose groups are no iterators."""

    def groupby(self, words: list[str], key: Any) -> list[tuple[int, str]]:
        return [(key(word), word) for word in words]


own = Own()


def kept_if_long(s: Any, words: list[str]) -> Any:
    for size, group in groupby(words, key=len):
        if size < 2:
            continue
        group = list(group)
        s += f"{size}: {group} {len(group)}"
    return None


def while_another_name_grows(s: Any, words: list[str]) -> Any:
    same = words
    found = []
    for size, group in groupby(words, len):
        found.append((size, list(group)))
        if len(same) < 7:
            same.append("zz")
    return found


def while_another_name_of_a_known_list_grows(s: Any, words: list[str]) -> Any:
    own = ["b", *(words[:1] or ["q"]), "dd"]
    same = own
    found = []
    for size, group in groupby(own, len):
        found.append((size, list(group)))
        if len(same) < 7:
            same.append("zz" + found[0][1][0])
    return found


class Box:
    def __init__(self, items: list[str]) -> None:
        self.items = items

    def more(self) -> None:
        self.items.append("zz")


def while_an_object_with_it_grows(s: Any, words: list[str]) -> Any:
    box, found = Box(words), []
    for size, group in groupby(words, len):
        found.append((size, list(group)))
        if len(found) < 3:
            box.more()
    return found


def the_same(words: list[str]) -> list[str]:
    return words


def while_what_a_call_gives_grows(s: Any, words: list[str]) -> Any:
    found = []
    for size, group in groupby(the_same(words), len):
        found.append((size, list(group)))
        if len(words) < 7:
            words.append("zz")
    return found


def while_it_grows_in_a_comprehension(s: Any, words: list[str]) -> Any:
    same = words
    return [(n, list(group), len(same) < 7 and same.append("zz"))
            for n, group in groupby(words, len)]  # fmt: skip


OTHERS = (
    a_key_that_fails, a_key_that_fails_late, a_group_is_used_twice, a_group_is_used_later,
    a_part_of_a_group, a_group_in_a_loop, after_the_loop, kept_if_long,
    groups_of_its_own, while_it_grows, while_another_name_grows,
    while_another_name_of_a_known_list_grows, while_an_object_with_it_grows,
    while_what_a_call_gives_grows, while_it_grows_in_a_comprehension,
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("body", EQUAL)
def test_groups_are_taken_in_turn(body: Any) -> None:
    agree_saved(around_failing(body), POOL, n=12, q="x")


@pytest.mark.sweep
@pytest.mark.parametrize("body", OTHERS)
def test_others_are_equal_or_refused(body: Any) -> None:
    equal_or_refused(around_failing(body), POOL)
