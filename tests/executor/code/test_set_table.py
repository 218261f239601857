"""Copies of sets have the order of these, after the same changes too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

from sgc.runtime.executor.code.run import run_code
from sgc.runtime.executor.code.set_order import copied_set
from sgc.runtime.executor.code.set_table import IS_READ, exact_copy, is_same
from sgc.tracing.pieces.text.constants import literal

# Numbers that often want the same place.
NUMBERS = st.one_of(
    st.integers(-3, 40),
    st.integers(0, 40).map(lambda n: 8 * n),
    st.integers(0, 9).map(lambda n: 64 * n),
    st.integers(-(2**63), 2**70),
    st.floats(0, 9).map(lambda x: round(x, 1)),
    st.booleans(),
    st.none(),
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add", "add", "add", "discard", "discard"]), NUMBERS),
        st.tuples(
            st.sampled_from([
                "update", "difference_update", "symmetric_difference_update", "__ior__",
            ]),
            st.sets(NUMBERS, max_size=30),
        ),
        st.just(("pop", None)),
    ),
    max_size=40,
)  # fmt: skip


def change(changed: set[Any], changes: list[tuple[str, Any]]) -> list[Any]:
    """What the set is after each change, and what it gave."""
    seen = []
    for name, given_ in changes:
        if name == "pop":
            seen.append(changed.pop() if changed else None)
        else:
            getattr(changed, name)(given_)
        seen.append([*changed])
    return seen


@pytest.mark.skipif(not IS_READ, reason="this Python keeps sets in another way")
@examples(1200)
@given(CHANGES, CHANGES)
def test_a_copy_is_the_same_after_the_same_changes(
    before: list[tuple[str, Any]], after: list[tuple[str, Any]]
) -> None:
    made: set[Any] = set()
    change(made, before)
    copy, has_order = copied_set(made)
    assert has_order
    assert is_same(made, copy)
    assert change(copy, after) == change(made, after)


@pytest.mark.parametrize("n", [1000, 100_000])
def test_a_large_set_is_copied(n: int) -> None:
    made = {7 * k for k in range(n)}
    made -= {7 * k for k in range(0, n, 3)}
    made.pop()
    copy = exact_copy(made)
    assert copy is not None
    assert change(copy, [("pop", None), ("add", 3)]) == change(made, [("pop", None), ("add", 3)])


def test_items_may_be_copies() -> None:
    made: set[Any] = {(n, ("a", n)) for n in range(5)}
    made.discard((3, ("a", 3)))
    copy = exact_copy(made, [(n, (text, n)) for n, (text, _) in made])
    assert copy is not None
    assert [*copy] == [*made]
    assert all(one is not other for one, other in zip(copy, made, strict=True))
    assert change(copy, [("add", 8), ("add", 0)]) == change(made, [("add", 8), ("add", 0)])


@dataclass(frozen=True)
class Point:
    """Does not ask another type's object whether it equals it."""

    x: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.x == other.x

    def __hash__(self) -> int:
        return hash(self.x)


@dataclass(frozen=True)
class Frozen:
    a: int
    b: int = 7


@pytest.mark.sweep
@pytest.mark.parametrize("is_same_items", [True, False])
@pytest.mark.parametrize("n_removed", [0, 1, 2])
def test_objects_that_came_one_by_one_are_copied(n_removed: int, is_same_items: bool) -> None:
    for n in range(3, 200):
        made: set[Any] = set()
        for x in range(n):
            made.add(Point(x))
        for x in range(n_removed):
            made.discard(Point(x))
        copy = exact_copy(made, [each if is_same_items else Point(each.x) for each in made])
        assert copy is not None, n
        more = [("add", Point(n + 64 * k)) for k in range(9)]
        assert change(copy, more) == change(made, more)


def test_frozen_objects_of_generated_hashes_are_copied() -> None:
    """As many of them as a table holds that has just grown, where most that come later collide."""
    for n in range(1, 70):
        made: set[Any] = set()
        for x in range(n):
            made.add(Frozen(x))
        copy = exact_copy(made)
        assert copy is not None, n
        assert [*copy] == [*made]


def test_items_of_other_hashes_have_no_table() -> None:
    assert exact_copy({1, 2}, [3, 4]) is None


@examples(400)
@given(CHANGES, CHANGES)
def test_what_is_written_for_a_set_has_its_order_or_is_told(
    before: list[tuple[str, Any]], after: list[tuple[str, Any]]
) -> None:
    made: set[Any] = set()
    change(made, before)
    text, writer = literal(made)
    copy = run_code(f"def piece():\n    return {text}", [])
    assert writer.lost or change(copy, after) == change(made, after)


def test_hashes_chosen_to_collide_end() -> None:
    """Each item would be looked for in all places of the others."""
    made = {n << 61 for n in range(2, 3000)} | {n * (2**61 - 1) for n in range(300)}
    copied_set({n * 2**40 for n in range(3000)})
    copied_set(made)


def test_deep_copies_are_as_pythons() -> None:
    code = (
        "import copy\n\ndef piece(xs):\n    made = set()\n    for x in xs:\n        made.add(x)\n"
        "    made.discard(8)\n    return [[*made], [*copy.deepcopy(made)], "
        "[*copy.deepcopy(frozenset(made))], [*copy.copy(made)]]"
    )
    names: dict[str, Any] = {}
    exec(code, names)
    for xs in ([40, 8, 0, 16, 72, 9], [8, 0], [97, 64, 33, 1, 32, 8, 128]):
        assert run_code(code, [xs]) == names["piece"](xs)
