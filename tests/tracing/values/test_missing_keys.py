"""Reading a key of a `defaultdict` known only at run time adds it, in the middle of an expression
too."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from around import around
from control_flow import agree_or_refuse, agree_saved, equal_or_refused
from tests_support import one_in

from sgc.programs.program import Program
from sgc.tracing.tracer import trace

FIRST = 1000
POOL = ("a b a", "b", "", "c c a b", "a b c d", "b a")


def bar(n: Any, width: int = 4) -> str:
    return "#" * min(int(n), width)


def in_a_text(s: Any, words: list[str]) -> Any:
    counts: defaultdict[str, int] = defaultdict(int)
    for word in words:
        if word != "b":
            counts[word] += 1
        s += f"[{bar(counts[word])}] {counts[word]} of {counts['z']}\n"
    return dict(counts), len(counts)


def of_floats(s: Any, words: list[str]) -> Any:
    spent: defaultdict[str, float] = defaultdict(float)
    for word in words:
        if word < "c":
            spent[word] += 1.5
        s += f"{spent[word]:.2f} "
    s += f"{sum(spent.values()):.1f} " + " ".join(day for day, x in spent.items() if x > 1)
    return {day: round(value, 1) for day, value in spent.items()}


def in_a_test(s: Any, words: list[str]) -> Any:
    counts: defaultdict[str, int] = defaultdict(int)
    for word in words:
        counts[word] += 1
        if counts["a"] > 1:
            s += "twice"
    return sorted(counts)


def of_a_known_one(s: Any, words: list[str]) -> Any:
    counts: defaultdict[str, int] = defaultdict(int, a=2)
    for word in words:
        s += f"{counts[word]} "
        if counts[word + "b"] or len(counts) > 9:
            s += "many"
    return sorted(counts.items())


def of_a_known_one_in_a_branch(s: Any, words: list[str]) -> Any:
    counts: defaultdict[str, int] = defaultdict(int)
    for word in words:
        if word > "b":
            counts[word] += 1
    s += f"{counts[s['a']]} {len(counts)}"
    return dict(counts)


def of_lists(s: Any, words: list[str]) -> Any:
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for n, word in enumerate(words):
        groups[len(word)].append(word)
        s += f"{n}: {len(groups[len(word)])} {len(groups[n])}\n"
    return dict(groups)


def in_a_loop_over_it(s: Any, words: list[str]) -> Any:
    counts: defaultdict[str, int] = defaultdict(int)
    for word in words:
        counts[word] += 1
    for word in counts:
        s += f"{word}: {counts[word]}\n"
    return dict(counts)


def handled(s: Any, words: list[str]) -> Any:
    counts: defaultdict[str, int] = defaultdict(int)
    for word in words:
        counts[word] += 1
        try:
            s += f"{1 / counts[word + 'b']}"
        except ZeroDivisionError:
            s += "none"
    return sorted(counts)


def of_a_constant(s: Any, words: list[str]) -> Any:
    ratings: defaultdict[str, int] = defaultdict(lambda: FIRST)
    for word in words:
        ratings[word] += len(word)
        s += f"{ratings[word]} {ratings[word + 'a'] - FIRST} "
    return sorted(ratings.items())


def of_a_display(s: Any, words: list[str]) -> Any:
    groups: defaultdict[str, dict[str, list[int]]] = defaultdict(lambda: {"n": [0]})
    for n, word in enumerate(words):
        groups[word]["n"].append(n)
    s += f"{groups['a']}"
    return sorted(groups)


def of_dicts_by_default(s: Any, words: list[str]) -> Any:
    places: Any = defaultdict(lambda: defaultdict(list))
    tallies: Any = defaultdict(Counter)
    for n, word in enumerate(words):
        places[word][word[:1]].append(n)
        tallies[word]["n"] += 1
        s += f"{len(places)} {len(places['a'])} {tallies[word]['n']}"
    return sorted(places), sorted(tallies)


def of_dicts_read_by_default(s: Any, words: list[str]) -> Any:
    places: Any = defaultdict(lambda: defaultdict(lambda: 7))
    for word in words:
        places[word]["n"] += 1
    inner = places["a"]
    s += f"{inner['z']} {len(inner)} {len(places['a'])}"
    return len(places)


EQUAL = (
    of_dicts_by_default,
    of_a_known_one,
    of_a_known_one_in_a_branch,
    of_a_constant,
    in_a_text,
    of_floats,
    in_a_test,
    in_a_loop_over_it,
    handled,
)


def in_a_loop_over_its_items(s: Any, words: list[str]) -> Any:
    counts: defaultdict[str, int] = defaultdict(int)
    for word in words:
        counts[word] += 1
    for word, n in counts.items():
        s += f"{word}: {n} {counts[word]} {counts.get('z')}\n"
    return dict(counts)


def of_a_known_one_held_twice(s: Any, words: list[str]) -> Any:
    counts: defaultdict[str, int] = defaultdict(int)
    both = [counts]
    s += f"{counts[s['a']]}"
    return both


def held_twice(s: Any, words: list[str]) -> Any:
    counts: defaultdict[str, int] = defaultdict(int)
    for word in words:
        counts[word] += 1
    both = [counts]
    s += f"{counts['z']}"
    return both


def shown_with_its_function(s: Any, words: list[str]) -> Any:
    ratings: defaultdict[str, int] = defaultdict(lambda: 3)
    for word in words:
        ratings[word] += 1
    s += f"{len(ratings)}"
    return str(ratings)[:11]


OTHERS = (
    of_dicts_read_by_default,
    of_a_known_one_held_twice,
    of_a_display,
    shown_with_its_function,
    in_a_loop_over_its_items,
    held_twice,
)


@pytest.mark.sweep
@pytest.mark.parametrize("body", EQUAL)
def test_a_missing_key_is_added(body: Any) -> None:
    agree_saved(around(body), POOL, n=12, q="x")


@pytest.mark.parametrize("body", one_in(3, OTHERS))
def test_others_are_equal_or_refused(body: Any) -> None:
    equal_or_refused(around(body), POOL)


@pytest.mark.parametrize("body", [of_lists])
def test_others_are_equal_or_end_with_an_error(body: Any) -> None:
    found = around(body)
    agree_or_refuse(found, Program(trace(found, is_full=True)), POOL, n=8)
