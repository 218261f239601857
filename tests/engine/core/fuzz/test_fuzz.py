"""A short part of the long fuzz (tools/fuzz_cache.py): tree and pool against the naive cache, and
random engines against the naive model, every invariant checked after each step."""

from __future__ import annotations

from collections import Counter

import pytest
from engine.core.cache import cache_fuzz
from engine.core.fuzz import engine_fuzz

from sgc.runtime.engine.cache.radix import RadixTree


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
@pytest.mark.parametrize("kind", ["radix", "list"])
def test_tree_and_pool_do_what_a_dictionary_would(kind, seed) -> None:
    cache_fuzz.run(seed, 4000, kind)


def test_the_operations_meet_every_case(monkeypatch) -> None:
    """Splits, leaves cut short, last uses, memory that cannot be had, all often enough."""
    seen: Counter[str] = Counter()

    def counting(owner: type, name: str, case) -> None:
        original = getattr(owner, name)

        def called(self, *args):
            result = original(self, *args)
            seen[case(result, *args)] += 1
            return result

        monkeypatch.setattr(owner, name, called)

    counting(RadixTree, "_split", lambda *_: "split")
    counting(RadixTree, "_shorten", lambda _, node, k: "gone" if node.parent is None else "cut")
    counting(RadixTree, "demote", lambda *_: "demoted")
    counting(cache_fuzz.CacheFuzz, "_reserve", lambda got, n: "refused" if got is None else "got")
    cache_fuzz.run(0, 4000)
    assert all(
        seen[case] > 100 for case in ("split", "cut", "gone", "demoted", "refused", "got")
    ), seen


@pytest.mark.parametrize("n", [10, pytest.param(30, marks=pytest.mark.slow)])
def test_random_engines_answer_as_the_naive_model(n: int) -> None:
    """And what they meet on the way is not always the same."""
    setups = [engine_fuzz.run(seed) for seed in range(n)]
    for name in ("policy", "cache", "pool", "chunk", "per_step", "max_running", "cancels"):
        assert len({getattr(setup, name) for setup in setups}) >= 3, name
    assert {setup.lookup for setup in setups} == {True, False}
