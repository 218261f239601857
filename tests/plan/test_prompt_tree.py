"""The tree of keys and the order over it, held to naive ones; its cost in comparisons."""

from __future__ import annotations

import random

import pytest

from sgc.planning import plan as plans
from sgc.planning import tree
from sgc.planning.known import Known
from sgc.planning.tree import common_chars, depth_first, saved_chars


def random_texts(seed: int, n: int, alphabet: str = "ab", longest: int = 8) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.choices(alphabet, k=draw.randrange(longest))) for _ in range(n)]


def naive_order(rows: list[tuple[int, str]], depth: int = 0) -> list[int]:
    """Depth first through a trie of characters, children by their first row."""
    groups: dict[object, list[tuple[int, str]]] = {}
    for row, text in rows:
        groups.setdefault(text[depth] if depth < len(text) else (row,), []).append((row, text))
    found: list[int] = []
    for group in groups.values():
        is_one = len(group) == 1 or depth >= max(len(text) for _, text in group)
        found += [row for row, _ in group] if is_one else naive_order(group, depth + 1)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_the_order_is_depth_first_and_siblings_are_in_order_of_arrival(seed):
    texts = random_texts(seed, 1 + seed % 25)
    order = depth_first([(text,) for text in texts])
    assert sorted(order) == list(range(len(texts)))
    for prefix in {text[:end] for text in texts for end in range(len(text) + 1)}:
        places = [place for place, row in enumerate(order) if texts[row].startswith(prefix)]
        assert places == list(range(places[0], places[0] + len(places))), (prefix, order)
    assert order == naive_order([*enumerate(texts)])


@pytest.mark.parametrize("seed", range(30))
def test_what_is_saved_is_the_text_less_the_tree(seed):
    texts = random_texts(seed, 20)
    prefixes = {text[:end] for text in texts for end in range(1, len(text) + 1)}
    assert saved_chars([(text,) for text in texts]) == sum(map(len, texts)) - len(prefixes)


def test_what_keys_have_in_common():
    assert common_chars(("abc", "def"), ("abc", "dxf")) == 4
    assert common_chars(("abc",), ("abc", "d")) == 3
    assert common_chars(("abcd",), ("abc", "d")) == 3
    assert common_chars((), ("a",)) == 0
    one, other = "x" * 1000 + "y" * 50, "x" * 1000 + "z"
    assert common_chars((one,), (other,)) == 1000


def test_no_rows_and_one_row():
    assert depth_first([]) == []
    assert plans.plan_known([]).predicted_hit_rate == 0.0
    assert plans.plan_known([Known((("a",),), 0, 0)]).order == (0,)


def rows_of(*prompts: tuple[str, ...]) -> list[Known]:
    return [Known(tuple((text,) for text in row), 5, 3) for row in prompts]


def test_the_prediction_counts_the_tree():
    found = plans.plan_known(rows_of(("p" * 90 + "q" * 10,), ("p" * 90 + "r" * 10,), ("s" * 100,)))
    assert found.known_chars == 300
    assert found.distinct_chars == 210
    assert found.predicted_hit_rate == pytest.approx(0.3)
    assert "30.0%" in found.report()
    assert [size.own_chars for size in found.sizes] == [105, 15, 105]
    assert [size.shared_chars for size in found.sizes] == [0, 90, 0]


def test_rows_are_grouped_by_the_prompt_that_they_share_most_of():
    pages = ["first page " * 20, "second page " * 20]
    rows = [(f"{index} is a question of its own", pages[index % 2]) for index in range(6)]
    assert plans.plan_known(rows_of(*rows)).order == (0, 2, 4, 1, 3, 5)


def test_rows_that_share_next_to_nothing_stay_as_they_are():
    assert plans.plan_known(rows_of(("be",), ("a",), ("bed",))).order == (0, 1, 2)


def test_prompts_of_one_row_that_share_count_once():
    (size,) = plans.plan_known(rows_of(("trunk" + "a", "trunk" + "b"))).sizes
    assert size.own_chars == len("trunkab") + 5


def comparisons(n: int, monkeypatch) -> int:
    """How many comparisons of keys a plan of n rows takes."""
    counted = 0

    class Text(str):
        __slots__ = ()

        def __lt__(self, other: str) -> bool:
            nonlocal counted
            counted += 1
            return str.__lt__(self, other)

    def common(a: str, b: str, real=tree._common) -> int:
        nonlocal counted
        counted += 1
        return real(a, b)

    with monkeypatch.context() as patched:
        patched.setattr(tree, "_common", common)
        draw = random.Random(3)
        page = [f"{number} " + "page " * 200 for number in range(n // 5)]
        known = [
            Known((("instructions " * 50, Text(draw.choice(page)), Text(f"question {i}")),), 0, 0)
            for i in range(n)
        ]
        plans.plan_known(known)
    return counted


def test_planning_takes_about_as_many_comparisons_a_row_however_many_rows(monkeypatch):
    few, many = (comparisons(n, monkeypatch) / n for n in (500, 10_000))
    assert many < 1.7 * few  # n log n: 14 to 9
    assert many < 100
