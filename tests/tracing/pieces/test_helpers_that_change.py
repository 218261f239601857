"""Functions of the program's own that change what they are given, as code that is data."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from around import around
from control_flow import agree_or_refuse, agree_saved, equal_or_refused

import sgc
from sgc.programs.program import Program
from sgc.tracing.tracer import trace

POOL = ("a b a", "b", "", "c c a b", "a b c d", "b a")
TOTALS: dict[str, int] = {}


def count(counts: dict[str, int], word: str, by: int = 1) -> None:
    counts[word] = counts.get(word, 0) + by


def twice(counts: dict[str, int], word: str) -> None:
    count(counts, word)
    count(by=10, word=word + "!", counts=counts)


def rated(ratings: Any, a: str, b: str, score: float) -> float:
    change = 32 * (score - 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / 400)))
    ratings[a] += change
    ratings[b] -= change
    return round(change, 3)


def assign(config: dict[str, Any], path: str, value: str) -> None:
    *parents, last = path.split(".")
    for name in parents:
        config = config.setdefault(name, {})
    config[last] = value


def kept(xs: list[str], word: str) -> list[str]:
    xs.append(word)
    return xs


def swapped(one: dict[str, int], other: dict[str, int], word: str) -> None:
    one = other
    one[word] = 1


def first_of(rows: list[dict[str, int]], word: str) -> None:
    row = rows[0]
    row[word] = 1


def in_total(word: str) -> None:
    count(TOTALS, word)


def failing(counts: dict[str, int], word: str) -> None:
    counts[word] = 1
    counts[word + "?"] = int(word)


def each_of(counts: dict[str, int], words: list[str]) -> None:
    for word in words:
        count(counts, word)


def down(counts: dict[str, int], word: str) -> None:
    if word:
        count(counts, word)
        down(counts, word[1:])


def once(seen: set[str], word: str) -> bool:
    is_new = word not in seen
    seen.add(word)
    return is_new


def fixed(tags: list[str], n: int) -> list[str]:
    tags = [tag if tag in "ab" else "-" for tag in tags[:n]]
    tags += ["?"] * (n - len(tags))
    for i, tag in enumerate(tags):
        if tag == "b":
            tags[i] = "B"
    return tags


def late(xs: list[str], n: int) -> list[str]:
    xs.append("late")
    xs = [*xs, "new"]
    xs.append(str(n))
    return xs


def maybe(xs: list[str], n: int) -> list[str]:
    if n > 2:
        xs = [*xs]
    xs.append("maybe")
    return xs


def spans(words: list[str]) -> list[list[str]]:
    current: list[str] = []
    kind, found = None, []
    for word in words:
        if word == kind:
            current.append(word)
            continue
        found.append(current)
        current, kind = ([word], word) if word != "c" else ([], None)
    return [*found, current]


def counted(s: Any, text: str) -> Any:
    counts: dict[str, int] = {}
    for word in text.split():
        count(counts, word)
        s += f"{word}: {counts[word]}\n"
    return counts, sorted(counts)


def counted_by_two(s: Any, text: str) -> Any:
    counts = {"a": 3}
    for word in text.split():
        twice(counts, word)
        s += f"{len(counts)} "
    return counts


def counted_in_a_counter(s: Any, text: str) -> Any:
    counts: Counter[str] = Counter()
    for word in text.split():
        count(counts, word)
        s += word
    return counts.most_common(2)


def a_tournament(s: Any, text: str) -> Any:
    ratings: defaultdict[str, float] = defaultdict(float)
    for word in text.split():
        s += "-"
        rated(ratings, word, "b", 1.0)
    return sorted(ratings.items(), key=lambda pair: -pair[1])


def a_result_and_a_change(s: Any, text: str) -> Any:
    ratings = {"a": 1.0, "b": 2.0, "c": 0.0, "d": 0.0}
    found = []
    for word in text.split():
        change = rated(ratings, word, "a", 0.0)
        found.append(change)
        s += f"{change}"
    return ratings, found


def a_nested_part(s: Any, text: str) -> Any:
    config = {"a": {"x": "1"}, "b": {}}
    for word in text.split():
        assign(config, f"{word}.{word}", word.upper())
        s += "."
    return config


def a_loop_in_it(s: Any, text: str) -> Any:
    counts: dict[str, int] = {}
    each_of(counts, text.split())
    s += f"{len(counts)}"
    return counts


def a_helper_of_itself(s: Any, text: str) -> Any:
    counts: dict[str, int] = {}
    down(counts, text)
    s += f"{len(counts)}"
    return counts


def a_set_that_grows(s: Any, text: str) -> Any:
    seen: set[str] = set()
    for word in text.split():
        is_new = once(seen, word)
        s += "new " if is_new else "old "
    return sorted(seen)


def one_of_two(s: Any, text: str) -> Any:
    short: set[str] = set()
    long: set[str] = set()
    for word in text.split():
        (short if len(word) < 2 else long).add(word)
    s += f"{len(short)}" + sgc.select("which", ["yes", "no"])
    (short if s["which"] == "yes" else long).add("z")
    return sorted(short), sorted(long)


def a_parameter_set_anew(s: Any, text: str) -> Any:
    tags = text.split()
    better = fixed(tags, 3)
    s += f"{better}"
    return tags, better, spans(tags)


EQUAL = (
    a_parameter_set_anew, one_of_two,
    counted, counted_by_two, counted_in_a_counter, a_tournament, a_result_and_a_change,
    a_nested_part, a_helper_of_itself, a_set_that_grows,
)  # fmt: skip


def the_same_list_twice(s: Any, text: str) -> Any:
    xs: list[str] = []
    for word in text.split():
        ys = kept(xs, word)
        s += "."
        ys.append("!")
    return xs


def another_is_changed(s: Any, text: str) -> Any:
    one: dict[str, int] = {}
    other: dict[str, int] = {}
    for word in text.split():
        swapped(one, other, word)
        s += "."
    return one, other


def a_part_is_changed(s: Any, text: str) -> Any:
    rows: list[dict[str, int]] = [{}, {}]
    for word in text.split():
        first_of(rows, word)
        s += "."
    return rows


def a_module_is_changed(s: Any, text: str) -> Any:
    for word in text.split():
        in_total(word)
        s += "."
    return len(TOTALS)


def an_alias_sees_it(s: Any, text: str) -> Any:
    counts: dict[str, int] = {}
    both = [counts, counts]
    for word in text.split():
        count(counts, word)
        s += "."
    return both


def a_change_before_it_fails(s: Any, text: str) -> Any:
    counts: dict[str, int] = {}
    for word in text.split():
        try:
            failing(counts, word)
        except ValueError:
            s += "no"
    return counts


def a_function_that_is_passed(s: Any, text: str) -> Any:
    counts: dict[str, int] = {}
    apply = count
    for word in text.split():
        apply(counts, word)
        s += "."
    return counts


def out_of_a_table(s: Any, text: str) -> Any:
    counts: dict[str, int] = {}
    table = {"a": count, "b": twice}
    for word in text.split():
        table.get(word, count)(counts, word)
        s += "."
    return counts


def of_all_in_a_comprehension(s: Any, text: str) -> Any:
    counts: dict[str, int] = {}
    s += f"{len([count(counts, word) for word in text.split()])}"
    return counts


def a_parameter_set_anew_late(s: Any, text: str) -> Any:
    tags = text.split()
    better = late(tags, 3)
    s += f"{better}"
    return tags, better


def a_parameter_set_anew_perhaps(s: Any, text: str) -> Any:
    tags = text.split()
    better = maybe(tags, len(tags))
    s += f"{better}"
    return tags, better


OTHERS = (
    a_parameter_set_anew_late,
    the_same_list_twice, another_is_changed, a_part_is_changed, a_module_is_changed,
    an_alias_sees_it, a_change_before_it_fails, a_function_that_is_passed, out_of_a_table,
    of_all_in_a_comprehension, a_loop_in_it,
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("body", EQUAL)
def test_what_a_helper_changes_is_changed(body: Any) -> None:
    agree_saved(around(body, gets_text=True), POOL, n=12, q="x")


@pytest.mark.sweep
@pytest.mark.parametrize("body", OTHERS)
def test_others_are_equal_or_refused(body: Any) -> None:
    TOTALS.clear()
    equal_or_refused(around(body, gets_text=True), POOL)


def test_what_may_be_the_argument_itself_ends_with_an_error() -> None:
    found = around(a_parameter_set_anew_perhaps, gets_text=True)
    agree_or_refuse(found, Program(trace(found, is_full=True)), POOL, n=8)
