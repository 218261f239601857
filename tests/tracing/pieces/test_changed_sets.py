"""Sets that change between nodes of a graph: their order is that of the interpreter's own sets."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
from control_flow import agree_saved
from tests_support import one_in

import sgc
from sgc.errors import TraceError
from sgc.tracing.tracer import trace


def _reply(seed: int) -> str:
    rng = random.Random(seed)
    numbers = [rng.choice([rng.randrange(40), 8 * rng.randrange(40), 64 * rng.randrange(9)])
               for _ in range(rng.randrange(3, 22))]  # fmt: skip
    return " ".join(map(str, numbers))


POOL = ("97 64 33 1 32", *map(_reply, range(30)))


def removed_and_added(s, numbers):
    seen = set(numbers)
    seen.discard(64)
    s += "x"
    seen.add(64)
    seen.add(128)
    return list(seen)


def added_to_in_a_loop(s, numbers):
    seen = set()
    for n in numbers:
        s += f"{n}"
        seen.add(n)
    return list(seen)


def merged_in_a_loop(s, numbers):
    seen = {0}
    for n in numbers:
        s += f"{n}"
        seen |= {n, 2 * n, 0}
    return [*seen]


def changed_in_all_ways(s, numbers):
    seen = {2 * n for n in numbers}
    shown = []
    for n in numbers:
        s += f"{n}"
        if n % 7 == 0:
            seen.discard(n)
        elif n % 7 == 1:
            seen -= {n, 8 * n}
        elif n % 7 == 2:
            seen ^= {n, n + 8}
        elif n % 7 == 3:
            seen.update([n + 1, 3 * n])
        elif n % 7 == 4 and seen:
            seen.pop()
        elif n % 7 == 5:
            seen &= set(range(0, 400, 8))
        else:
            seen.add(n * n)
        shown.append(list(seen))
    return shown


def taken_one_by_one(s, numbers):
    left, taken = set(numbers), []
    while left:
        n = left.pop()
        s += f"{n}"
        if n > 32:
            left.add(n // 8)
        taken.append(n)
    return taken


def held_by_a_dict(s, numbers):
    groups = {"odd": set(), "even": set()}
    for n in numbers:
        s += f"{n}"
        groups["odd" if n % 2 else "even"].add(n)
        groups["even"].discard(n - 1)
    return {key: list(each) for key, each in groups.items()}


def of_pairs(s, numbers):
    pairs = set()
    for n in numbers:
        s += f"{n}"
        pairs.add((n, (n % 3, n % 2)))
        if n % 4 == 0:
            pairs.discard((n // 2, (0, 0)))
    return [*pairs]


def copied_deeply(s, numbers):
    seen = set(numbers)
    seen.discard(1)
    s += "x"
    seen.add(2)
    other = copy.deepcopy([seen, frozenset(seen)])
    return [list(seen), *map(list, other)]


def known_before(s, numbers):
    seen = set()
    for n in (40, 8, 0, 16, 72, 9):
        seen.add(n)
    for n in numbers:
        s += f"{n}"
        seen.add(n)
    return list(seen)


def known_and_changed_before(s, numbers):
    seen = set()
    for n in (40, 8, 0, 16, 72, 9):
        seen.add(n)
    seen.remove(16)
    for n in numbers:
        s += f"{n}"
        seen.add(n)
    return list(seen)


def program(body: Callable[..., Any]) -> Any:
    @sgc.function
    def shown(s, q: str):
        s += q + sgc.gen("x", max_tokens=60)
        found = body(s, [int(x) for x in s["x"].split()])
        s += f" {found}" + sgc.gen("y", max_tokens=3)
        return found

    return shown


BODIES = (
    removed_and_added, added_to_in_a_loop, merged_in_a_loop, changed_in_all_ways, taken_one_by_one,
    held_by_a_dict, of_pairs, copied_deeply,
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("body", BODIES)
def test_a_set_has_its_order_in_each_node(body: Callable[..., Any]) -> None:
    agree_saved(program(body), POOL, n=16, q="x")


@pytest.mark.parametrize("body", one_in(2, [known_before, known_and_changed_before]))
def test_one_that_no_text_makes_is_refused_for_its_order(body: Callable[..., Any]) -> None:
    with pytest.raises(TraceError, match=r"test_changed_sets.py:\d+: the order of a set is seen"):
        trace(program(body), is_full=True)
