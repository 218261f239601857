"""The radix tree, the list that can stand in for it, and the pool: cases of note, and lists of
operations that hypothesis makes shorter when they fail (`test_fuzz.py` runs many more)."""

from __future__ import annotations

import numpy as np
import pytest
from engine.core.cache.cache_fuzz import CacheFuzz, Dice
from hypothesis import given
from hypothesis import strategies as st
from list_cache import ListCache
from other_caches import list_cache
from property_tests import examples

from sgc.runtime.engine.cache.pool import PagePool
from sgc.runtime.engine.cache.radix import Match, RadixTree


@examples(60)
@given(
    numbers=st.lists(st.integers(0, 999), min_size=100, max_size=400),
    kind=st.sampled_from(["radix", "list"]),
)
def test_what_operations_do_is_what_a_dictionary_would_do(numbers, kind) -> None:
    CacheFuzz(Dice(numbers), kind).run(30)


# -- the tree --


def grown(*runs: tuple[range, range]) -> RadixTree:
    """Tokens and their pages, inserted one after the other."""
    tree = RadixTree()
    for tokens, pages in runs:
        tree.insert(np.array(tokens), np.array(pages), tree.root())
    return tree


def find(tree, *tokens: int) -> Match:
    return tree.match(np.array(tokens, np.int64), tree.root())


def test_a_match_changes_nothing_and_a_lock_splits() -> None:
    tree = grown((range(10), range(10)))
    found = find(tree, 0, 1, 2, 9)
    assert (found.length, found.used, found.at_end) == (3, 3, False)
    assert len(list(tree.nodes())) == 2
    node = tree.lock(found)
    assert len(list(tree.nodes())) == 3
    assert tree.path_pages(node).tolist() == [0, 1, 2]
    assert tree.n_evictable == 7
    tree.check()


def test_who_locked_the_end_of_a_node_holds_it_after_a_split() -> None:
    tree = grown((range(6), range(6)))
    end = tree.lock(find(tree, *range(6)))
    middle = tree.lock(find(tree, 0, 1, 2))
    assert tree.path_pages(end).tolist() == list(range(6))
    tree.unlock(end)
    assert tree.evict(6).tolist() == [3, 4, 5]
    assert tree.path_pages(middle).tolist() == [0, 1, 2]


def test_a_last_use_goes_before_what_is_older() -> None:
    tree = grown((range(4), range(4)), (range(10, 14), range(4, 8)))
    recent = find(tree, *range(10, 14)).node
    tree.demote(recent, 1)
    tree.check()
    assert tree.evict(3).tolist() == [5, 6, 7]
    assert find(tree, *range(10, 14)).length == 1
    assert sorted(tree.evict(4).tolist()) == [0, 1, 2, 3]  # what was kept is the more recent


def test_many_last_uses_leave_the_order_of_the_others() -> None:
    """Also when most of what is queued for eviction is out of date and is swept out."""
    tree, order = RadixTree(), np.random.default_rng(3).permutation(300).tolist()
    last_used = order[::3] + order[1::3]
    for i in order:
        tree.insert(np.array([i]), np.array([i]), tree.root())
    for i in last_used:
        tree.demote(find(tree, i).node, 0)
    assert sorted(tree.evict(200).tolist()) == sorted(last_used)
    assert len(tree._heap) == 300
    tree.insert(np.array([300]), np.array([300]), tree.root())
    assert len(tree._heap) == 101, "what is out of date was not swept out"
    tree.check()
    assert tree.evict(101).tolist() == [*order[2::3], 300]


@pytest.mark.parametrize("why", ["locked", "continued"])
def test_a_last_use_leaves_what_others_use(why) -> None:
    tree = grown((range(6), range(6)), (range(10, 12), range(6, 8)))
    end = tree.lock(find(tree, *range(6)))
    if why == "locked":
        tree.lock(find(tree, 0, 1, 2, 3))
    else:
        tree.insert(np.array([0, 1, 2, 3, 9]), np.array([20, 21, 22, 23, 8]), tree.root())
    tree.unlock(end)
    tree.demote(end, 0)
    tree.check()
    assert sorted(tree.evict(2).tolist()) == [4, 5]
    assert find(tree, *range(6)).length == 4
    assert tree.evict(1).tolist() == [7]


def _lock_in_passing(tree: RadixTree) -> None:
    find(tree, 1, 2, 3).node.locks = 1


def _outlive(tree: RadixTree) -> None:
    find(tree, 1, 2, 3, 4).node.stamp = 99


def _count_wrong(tree: RadixTree) -> None:
    tree.n_evictable += 1


def _share_a_page(tree: RadixTree) -> None:
    find(tree, 1, 2, 3, 4).node.pages = np.array([1])


def _lose_a_page(tree: RadixTree) -> None:
    find(tree, 1, 2, 3).node.pages = np.array([1, 2])


def _forget_a_leaf(tree: RadixTree) -> None:
    tree._heap.clear()


BREAKS = [_lock_in_passing, _outlive, _count_wrong, _share_a_page, _lose_a_page, _forget_a_leaf]


@pytest.mark.parametrize("break_it", BREAKS)
def test_check_sees_a_broken_tree(break_it) -> None:
    tree = grown((range(1, 4), range(3)), (range(1, 5), range(4)))
    tree.check()
    break_it(tree)
    with pytest.raises(AssertionError):
        tree.check()


@pytest.mark.parametrize("make", [RadixTree, lambda: ListCache(4)])
def test_unlocking_too_often_is_our_bug(make) -> None:
    tree = make()
    node = tree.lock(Match(tree.root(), 0, 0))
    tree.unlock(node)
    with pytest.raises(AssertionError, match="more often"):
        tree.unlock(node)


def test_eviction_does_not_scan_the_tree(monkeypatch) -> None:
    """Evicting n leaves one at a time looks at each a bounded number of times."""
    tree, n, looked = RadixTree(), 2000, 0
    for i in range(n):
        tree.insert(np.array([i, 7]), np.array([2 * i, 2 * i + 1]), tree.root())
    original = tree._is_evictable

    def counting(node):
        nonlocal looked
        looked += 1
        return original(node)

    monkeypatch.setattr(tree, "_is_evictable", counting)
    for _ in range(2 * n):
        assert len(tree.evict(1)) == 1
    assert looked <= 8 * n


# -- the list --


def test_the_list_shares_pages_and_evicts_whole_sequences() -> None:
    cache = list_cache(12)
    for tokens in ([1, 2, 3, 4], [1, 2, 5], [1, 2, 3, 4, 6]):
        pages = cache.reserve(len(tokens))
        cache.insert(np.array(tokens), pages, cache.tree.root())
    assert cache.tree.n_tokens == 6
    assert len(list(cache.tree.nodes())) == 1 + 2  # the first is the beginning of the third
    cache.check()
    assert len(cache.tree.evict(1)) == 1  # the 5; the rest is the other's too
    assert cache.match(np.array([1, 2, 5]), b"").length == 2
    assert len(cache.tree.evict(1)) == 5


def test_the_list_evicts_what_was_used_longest_ago() -> None:
    """And no more sequences than it must."""
    tree = ListCache(20)
    for i in (0, 1, 2, 3, 0, 4):
        tree.insert(np.array([i, i]), np.array([2 * i, 2 * i + 1]), tree.root())
    held = tree.lock(find(tree, 1, 1))
    tree.unlock(tree.lock(find(tree, 2, 2)))
    assert [tree.evict(1).tolist() for _ in range(4)] == [[6, 7], [0, 1], [8, 9], [4, 5]]
    assert tree.evict(9).tolist() == []
    tree.unlock(held)
    assert tree.evict(9).tolist() == [2, 3]


def test_a_list_keeps_no_beginnings_of_what_it_has() -> None:
    """A request that publishes bit by bit leaves one sequence; another's beginning stays its."""
    tree = ListCache(9)
    node = tree.lock(find(tree))
    for n in range(1, 9):
        end = tree.insert(np.array([n]), np.array([n]), node).node
        tree.move_lock(node, end)
        node = end
    other = tree.lock(find(tree, 1, 2, 3))
    assert len(list(tree.nodes())) == 1 + 2
    tree.move_lock(other, tree.insert(np.array([4]), np.array([0]), other).node)
    assert len(list(tree.nodes())) == 1 + 2
    tree.check()


def test_check_sees_a_broken_list() -> None:
    tree = ListCache(9)
    tree.insert(np.arange(4), np.arange(4), tree.root())
    tree.insert(np.array([0, 1, 7]), np.array([8, 8, 4]), tree.root())
    tree.check()
    find(tree, 0, 1, 7).node.pages[1] = 5
    with pytest.raises(AssertionError):
        tree.check()


# -- the pool --


def test_pool_gives_each_page_once_and_notices_leaks() -> None:
    pool = PagePool(8)
    taken = pool.reserve(5)
    assert len(set(taken.tolist())) == 5
    pool.check(taken)
    with pytest.raises(AssertionError, match="accounted"):
        pool.check()
    with pytest.raises(AssertionError, match="two holders"):
        pool.check(np.array([taken[0]] * 5))
    for outside in (-1, 8):
        with pytest.raises(AssertionError, match="no page"):
            pool.check(np.array([*taken[1:], outside]))
    with pytest.raises(AssertionError, match="asked"):
        pool.reserve(4)
    pool.release(taken)
    assert pool.n_free == 8
    with pytest.raises(AssertionError, match="released"):
        pool.release(taken)
