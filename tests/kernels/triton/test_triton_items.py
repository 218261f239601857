"""How a step's attention is cut into items: every key that a token sees is attended to once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from attention_cases import ragged_of, random_ragged
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

from sgc.kernels.interface import Ragged
from sgc.kernels.triton.paged.blocks import Shape, few_rows, many_rows
from sgc.kernels.triton.paged.decode_plan import DecodePlan
from sgc.kernels.triton.paged.items import KEY_STEP, MIN_SPLIT, WHOLE, Items, Sharing, plan_items

SHAPE = Shape(n_heads=32, n_kv_heads=8, head_dim=128, v_head_dim=128, n_processors=132)
SOON = Sharing(min_pages=4, min_saved=8)


def planned(ragged: Ragged, shape: Shape, window: int | None = None, shares: bool = True) -> Items:
    arrays = (ragged.row_starts, ragged.page_starts, ragged.pages)
    return plan_items(
        *(a.numpy() for a in arrays), shape, window=window, shares=shares, sharing=SOON
    )


def check(items: Items, ragged: Ragged, shape: Shape, window: int | None) -> None:
    """Plays the kernels: counts what each token attends to, and who writes what."""
    n_tokens = int(ragged.row_starts[-1])
    n_times = [np.zeros(c, int) for c in items.contexts]
    writes = np.zeros(items.n_parts, int)
    n_whole = np.zeros(n_tokens, int)
    row_of = np.repeat(np.arange(ragged.n_rows), ragged.row_starts.diff().numpy())
    pages, page_starts = ragged.pages.numpy(), ragged.page_starts.numpy()
    for records, n_rows in ((items.few, few_rows(shape)), (items.many, many_rows(shape))):
        lengths = records[:, 4] - records[:, 3]
        assert (np.diff(lengths) <= 0).all(), "not longest first"
        for first, n, page_start, begin, end, ordinal in records.tolist():
            assert 0 < n * shape.group <= n_rows
            for token in items.tokens[first : first + n].tolist():
                context = int(items.contexts[token])
                lowest = 0 if window is None else max(context - window, 0)
                seen = slice(max(begin, lowest), min(end, context))
                n_times[token][seen] += 1
                own = page_starts[row_of[token]]
                assert (
                    pages[page_start + begin : page_start + seen.stop]
                    == pages[own + begin : own + seen.stop]
                ).all()
                if ordinal == WHOLE:
                    n_whole[token] += 1
                else:
                    writes[items.part_starts[token] + ordinal] += 1
                    assert items.part_starts[token] + ordinal < items.part_starts[token + 1]
    for counted in n_times:
        lowest = 0 if window is None else max(len(counted) - window, 0)
        assert (counted[lowest:] == 1).all()
        assert (counted[:lowest] == 0).all()
    assert (writes == 1).all()
    has_parts = np.diff(items.part_starts) > 0
    assert (n_whole == ~has_parts).all()
    assert items.merged.tolist() == np.flatnonzero(has_parts).tolist()


@examples(200)
@given(
    seed=st.integers(0, 10**6),
    window=st.sampled_from([None, None, 1, 7, 64, 700]),
    group=st.sampled_from([1, 2, 3, 4, 7, 8, 20]),
    n_kv_heads=st.sampled_from([1, 8]),
    head_dim=st.sampled_from([64, 256]),
    item_bytes=st.sampled_from([2, 4]),
    n_processors=st.sampled_from([4, 132]),
)
def test_every_key_that_a_token_sees_is_attended_to_once(
    seed, window, group, n_kv_heads, head_dim, item_bytes, n_processors
):
    rng = np.random.default_rng(seed)
    longest = int(rng.choice([0, 20, 600]))
    ragged = random_ragged(rng, longest, [1, 1, 1, 2, 5, 40, 100], int(rng.integers(1, 12)))
    shape = Shape(group * n_kv_heads, n_kv_heads, head_dim, head_dim, n_processors, item_bytes)
    check(planned(ragged, shape, window), ragged, shape, window)


def rows_of(lengths: list[int], n_new: int = 1) -> Ragged:
    starts = np.cumsum([0, *lengths])
    return ragged_of(
        [(n_new, np.arange(a, a + n)) for a, n in zip(starts[:-1], lengths, strict=True)]
    )


def test_a_long_row_is_split_so_that_all_of_the_device_has_work():
    items = planned(rows_of([100_000]), SHAPE)
    lengths = items.few[:, 4] - items.few[:, 3]
    assert 132 <= len(items.few) * SHAPE.n_kv_heads <= 6 * 132
    assert lengths.max() - lengths[:-1].min() == 0
    assert lengths.min() > MIN_SPLIT / 2


def test_short_splits_are_not_made():
    items = planned(rows_of([MIN_SPLIT, MIN_SPLIT + 1, 2 * MIN_SPLIT]), SHAPE)
    assert len(items.few) == 1 + 2 + 2
    assert (items.few[:, 3] % KEY_STEP == 0).all()


def test_many_rows_of_like_length_are_not_split():
    items = planned(rows_of([1000] * 256), SHAPE)
    assert (items.few[:, 5] == WHOLE).all()
    assert len(items.merged) == items.n_parts == 0


def test_among_short_rows_only_the_long_one_is_split():
    items = planned(rows_of([500] * 63 + [60_000]), SHAPE)
    assert items.merged.tolist() == [63]


def test_a_shared_prefix_is_attended_to_together():
    trunk = np.arange(1000)
    ragged = ragged_of([(1, np.concatenate([trunk, [2000 + i]])) for i in range(40)])
    items = planned(ragged, SHAPE)
    assert set(items.many[:, 4] <= 1000) == {True}
    assert (items.few[:, 4] - items.few[:, 3] == 1).all()
    assert len(items.merged) == 40
    apart = planned(ragged, SHAPE, shares=False)
    assert len(apart.many) == 0
    assert apart.few[:, 3].min() == 0


def test_rows_whose_tokens_fill_tiles_share_nothing():
    trunk = np.arange(1000)
    own = [2000 + 100 * i + np.arange(50) for i in range(4)]
    long = [(50, np.concatenate([trunk, pages])) for pages in own]
    short = [(1, np.concatenate([trunk, [3000 + i]])) for i in range(4)]
    items = planned(ragged_of(long + short), SHAPE)
    assert items.tokens[204:].tolist() == [200, 201, 202, 203]


def test_windowed_layers_share_nothing_and_skip_what_no_token_sees():
    trunk = np.arange(1000)
    ragged = ragged_of([(1, np.concatenate([trunk, [2000 + i]])) for i in range(40)])
    items = planned(ragged, SHAPE, window=100)
    assert len(items.many) == 0
    assert (items.few[:, 4] - items.few[:, 3] == 100).all()


def test_an_empty_row_has_an_item_without_keys():
    starts = np.array([0, 1, 2]), np.array([0, 5, 5])
    items = plan_items(*starts, np.arange(5), SHAPE, window=None, shares=True)
    assert items.few.tolist() == [[0, 1, 0, 0, 5, WHOLE], [1, 1, 5, 0, 0, WHOLE]]
    assert items.contexts.tolist() == [5, 0]


@examples(160)
@given(
    seed=st.integers(0, 10**6),
    group=st.sampled_from([1, 4, 7, 20]),
    n_processors=st.sampled_from([4, 132]),
    window=st.sampled_from([None, None, 300]),
    shares=st.booleans(),
)
def test_every_batch_of_decode_rows_fits_its_plan(seed, group, n_processors, window, shares):
    """`fill` asserts it; here, with a plan that is no larger than it must be."""
    rng = np.random.default_rng(seed)
    n_rows, longest = int(rng.integers(1, 40)), int(rng.choice([20, 400, 3000]))
    trunks = [np.arange(i * 5000, i * 5000 + rng.integers(longest)) for i in range(3)]
    rows = []
    for i in range(n_rows):
        own = 20_000 + i * 3000 + np.arange(1 + rng.integers(longest))
        rows.append((1, np.concatenate([trunks[rng.integers(3)], own])))
    ragged = ragged_of(rows)
    sharing = SOON if shares else None
    if window is not None and window >= len(ragged.pages):
        window = None  # the plan takes it for none
    pages = torch.zeros(len(ragged.pages), dtype=torch.int32)
    plan = DecodePlan(pages, n_rows, [window], sharing)
    shape = Shape(group, 1, 128, 128, n_processors)
    empty = plan.items(window, shape)
    assert (empty.few.view(-1, 6)[:, 3:5] == 0).all()
    assert plan.fill(ragged)
    filled = plan.items(window, shape)
    expected = planned(ragged, shape, window, shares)
    assert filled.few.view(-1, 6)[: len(expected.few)].tolist() == expected.few.tolist()
    assert filled.many.view(-1, 6)[: len(expected.many)].tolist() == expected.many.tolist()
    assert not filled.few.view(-1, 6)[len(expected.few) :].any()
    assert not filled.many.view(-1, 6)[len(expected.many) :].any()


@pytest.mark.parametrize("group", [1, 4, 7, 64, 128])
def test_tiles_have_room_for_a_token(group):
    shape = replace(SHAPE, n_heads=8 * group)
    assert few_rows(shape) >= group
    assert many_rows(shape) >= few_rows(shape)
