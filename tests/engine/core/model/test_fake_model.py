"""The fake model is a pure function of the prefix, and notices wrong pages."""

from __future__ import annotations

import numpy as np
import pytest

from sgc.runtime.engine.model.fake_model import FakeModel
from sgc.runtime.engine.model.forward import Row, flatten

TOKENS = np.array([5, 6, 7, 8, 9, 10])


def last(n: int) -> np.ndarray:
    return np.array([n - 1])


def whole(model: FakeModel, tokens: np.ndarray, pages: np.ndarray) -> np.ndarray:
    return model.run(flatten([Row(tokens, 0, pages, last(len(tokens)))]))


def test_chunks_pages_and_batches_do_not_matter() -> None:
    model = FakeModel(100, 50)
    expected = whole(model, TOKENS, np.arange(6))
    pages = np.array([40, 3, 99, 7, 12, 0])
    model.run(flatten([Row(TOKENS[:4], 0, pages[:4], last(0)[:0])]))
    other = Row(np.array([1, 2]), 0, np.array([60, 61]), last(2))
    logits = model.run(flatten([other, Row(TOKENS[4:], 4, pages, last(2))]))
    assert np.array_equal(logits[1:], expected)
    assert not np.array_equal(logits[:1], expected)


def test_a_row_may_continue_one_of_the_same_batch() -> None:
    model = FakeModel(100, 50)
    expected = whole(model, TOKENS, np.arange(50, 56))
    none = np.empty(0, np.int64)
    rows = [
        Row(TOKENS[:3], 0, np.arange(3), none),
        Row(TOKENS[3:5], 3, np.arange(5), none),
        Row(TOKENS[5:], 5, np.arange(6), last(1)),
    ]
    assert np.array_equal(model.run(flatten(rows)), expected)


@pytest.mark.parametrize("wrong", [0, 2, 4])
def test_a_wrong_page_shows(wrong: int) -> None:
    model = FakeModel(100, 50)
    expected = whole(model, TOKENS, np.arange(6))
    # The same token at the same place, but after another beginning.
    whole(model, np.concatenate([[49], TOKENS[1:]]), np.arange(20, 26))
    pages = np.arange(6)
    pages[wrong] += 20
    row = Row(TOKENS[5:], 5, pages, last(1))
    assert not np.array_equal(model.run(flatten([row])), expected)


def test_order_matters_and_the_seed() -> None:
    assert not np.array_equal(
        whole(FakeModel(9, 50), TOKENS, np.arange(6)),
        whole(FakeModel(9, 50), TOKENS[[1, 0, 2, 3, 4, 5]], np.arange(6)),
    )
    assert not np.array_equal(
        whole(FakeModel(9, 50), TOKENS, np.arange(6)),
        whole(FakeModel(9, 50, seed=1), TOKENS, np.arange(6)),
    )


def test_it_says_printable_things_breaks_and_ends() -> None:
    model = FakeModel(3000, 500, printable=range(100, 200), ends=[0], breaks=[1, 2])
    rng = np.random.default_rng(0)
    rows = [
        Row(rng.integers(0, 500, 3), 0, np.arange(3 * i, 3 * i + 3), last(3)) for i in range(1000)
    ]
    best = model.run(flatten(rows)).argmax(1)
    assert set(best) <= {0, 1, 2, *range(100, 200)}
    assert 0.005 < (best == 0).mean() < 0.1
    assert 0.02 < (best == 1).mean() < 0.2
    assert len(set(best)) > 30
