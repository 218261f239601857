"""Tokens drawn by the kernels, against the host's sampler: it keeps the same, with equal shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

from sgc.kernels.triton.sampling import (
    Adjustments,
    SamplingRows,
    adjust,
    log_probabilities,
    sample,
)
from sgc.runtime.engine.requests.draws import Draw, uniform
from sgc.runtime.engine.requests.finite import NotFinite
from sgc.runtime.engine.requests.penalties import Penalties
from sgc.runtime.engine.requests.request import SamplingParams
from sgc.runtime.engine.step import sampler

GREEDY = SamplingParams()


def rows_of(device, params, points, **more):
    """Rows of these params, each with the point that decides its draw."""

    def column(dtype, values):
        return torch.tensor(list(values), dtype=dtype, device=device)

    return SamplingRows(
        column(torch.float32, (p.temperature for p in params)),
        column(torch.int32, (p.top_k for p in params)),
        column(torch.float64, (p.top_p for p in params)),
        column(torch.float32, (p.min_p for p in params)),
        column(torch.float64, points),
        **more,
    )


def packed(masks, n_words, device):
    """Masks of rows, as the host's are before they are unpacked."""
    bits = np.zeros((len(masks), 32 * n_words), np.uint8)
    bits[:, : masks.shape[1]] = masks
    words = np.packbits(bits, axis=1, bitorder="little").view(np.int32)
    return torch.from_numpy(words.copy()).to(device)


def shares(row, draw):
    """[vocab]: the probability with which the host draws each token of a row."""
    row = row.copy()
    sampler._adjust(row, draw)
    weights = sampler._weights(row[None], [draw])[0]
    descending = np.sort(weights)[::-1]
    n_kept = sampler._n_kept(descending, np.cumsum(descending, dtype=np.float64), draw.params)
    kept = np.argsort(-weights, kind="stable")[:n_kept]  # of equals, those with the lower ids
    out = np.zeros(len(row))
    out[kept] = weights[kept]
    return out / out.sum()


def expected(row, draw):
    """The tokens that can be drawn, and for each a point that draws it."""
    share = shares(row, draw)
    tokens = np.flatnonzero(share > 1e-5)  # what float32 can tell
    return tokens, (np.cumsum(share) - share / 2)[tokens]


def logits_of(seed, n, vocab, dtype, n_distinct):
    """Float32 logits that dtype has; n_distinct: how many numbers they are of, or None."""
    random = np.random.default_rng(seed)
    logits = (random.standard_normal((n, vocab)) * 3).astype(np.float32)
    if n_distinct is not None:
        logits = random.choice([-0.0, 0.0, 1.5, -2.25, 3.0, 0.5][:n_distinct], (n, vocab))
    return torch.from_numpy(logits).to(dtype).float().numpy()


@pytest.mark.slow
@examples(60)
@given(
    vocab=st.sampled_from([1, 3, 12, 33, 150]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    n_distinct=st.sampled_from([None, 2, 4, 6]),
    temperature=st.sampled_from([0.3, 1.0, 2.0]),
    top_k=st.sampled_from([-1, 1, 2, 5, 11, 1000]),
    top_p=st.sampled_from([0.0, 0.2, 0.5, 0.6, 0.9, 0.999, 1.0]),
    min_p=st.sampled_from([0.0, 0.0, 0.05, 0.5, 1.0]),
    is_masked=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_kept_tokens_are_the_hosts(
    device, vocab, dtype, n_distinct, temperature, top_k, top_p, min_p, is_masked, seed
):
    params = SamplingParams(temperature, top_p, top_k, min_p)
    row = logits_of(seed, 1, vocab, dtype, n_distinct)[0]
    allowed = None
    if is_masked:
        allowed = np.random.default_rng(seed).random(vocab) < 0.5
        allowed[seed % vocab] = True
    tokens, points = expected(row, Draw(params, allowed=allowed))
    some = np.random.default_rng(seed).permutation(len(tokens))[:4]  # for speed
    some = np.unique([0, len(tokens) - 1, *some])
    tokens, points = tokens[some], points[some]
    logits = torch.from_numpy(row).to(device, dtype).expand(len(points), -1)
    n_words = -(-vocab // 32) + seed % 2
    masks = (
        None if allowed is None else packed(allowed[None].repeat(len(points), 0), n_words, device)
    )
    rows = rows_of(device, [params] * len(points), points)
    assert sample(logits, rows, masks).tolist() == tokens.tolist()
    hints = replace(rows, any_top_k=0 < top_k < vocab, any_top_p=top_p < 1)
    assert sample(logits, hints, masks).tolist() == tokens.tolist()


def test_rows_of_every_kind_at_once(device):
    """Over several parts of rows, the last of them not whole, some of them masked."""
    vocab, n = 9001, 6
    logits = logits_of(0, n, vocab, torch.float32, None)
    logits[:, 4090:4100] = logits.max(1, keepdims=True) - 0.25  # equals on both sides of a border
    params = [
        GREEDY,
        SamplingParams(1.0),
        SamplingParams(1.0, top_k=7),
        SamplingParams(1.5, top_p=0.3),
        SamplingParams(0.7, top_p=0.9, top_k=6),
        SamplingParams(1.0, min_p=0.78),
    ]
    is_masked = [False, True, True, False, False, True]
    masks = np.random.default_rng(1).random((n, vocab)) < 0.5
    draws = [
        Draw(p, allowed=mask if applies else None)
        for p, mask, applies in zip(params, masks, is_masked, strict=True)
    ]
    wanted, points = [int(logits[0].argmax())], [0.5]
    for row, draw in list(zip(logits, draws, strict=True))[1:]:
        tokens, at = expected(row, draw)
        wanted.append(int(tokens[len(tokens) * 2 // 3]))
        points.append(at[len(tokens) * 2 // 3])
    flags = torch.tensor(is_masked, device=device)
    rows = rows_of(device, params, points, is_masked=flags)
    wide = torch.full((n, vocab + 7), float("nan"), device=device)
    given_logits = wide[:, :vocab]
    given_logits.copy_(torch.from_numpy(logits))
    out = sample(given_logits, rows, packed(masks, -(-vocab // 32), device))
    assert out.dtype == torch.int64
    assert out.tolist() == wanted
    assert np.array_equal(given_logits.cpu().numpy(), logits)


@pytest.mark.parametrize("point", [0.0, 1 - 2**-53])
def test_ends_of_the_distribution(device, point):
    """The first and the last token that is kept, also where most have no chance."""
    logits = torch.full((1, 200), -1e4, device=device)
    logits[0, [7, 90, 150]] = 1.0
    logits[0, 190:] = float("-inf")
    rows = rows_of(device, [SamplingParams(1.0)], [point])
    assert sample(logits, rows).item() == (7 if point == 0 else 150)
    narrow = replace(rows, point=rows.point.float())  # where the last point is 1
    assert sample(logits, narrow).item() == (7 if point == 0 else 150)


def test_the_lowest_of_equals_is_the_greedy_token(device):
    logits = torch.zeros(3, 5000, device=device)
    logits[0, [4500, 4099, 4800]] = 2.0
    logits[1, 4097:] = -0.0
    logits[2] = -1.0
    logits[2, 4999] = -0.5
    rows = rows_of(device, [GREEDY] * 3, [0.9] * 3, any_drawn=False)
    assert sample(logits, rows).tolist() == [4099, 0, 4999]
    assert sample(logits, replace(rows, any_drawn=True)).tolist() == [4099, 0, 4999]


def test_rows_that_have_no_token(device):
    """What the host refuses is -1, greedy or drawn, and other rows are drawn as ever."""
    inf, nan = float("inf"), float("nan")
    logits = torch.zeros(8, 140)
    logits[0, 130] = nan
    logits[1, 3] = -nan
    logits[2, 3] = inf
    logits[3] = -inf
    logits[4, 5] = nan  # which its mask forbids
    logits[5, :70] = -inf  # all that its mask allows
    logits[6, 2] = -inf
    logits[7] = -3e38
    masks = np.ones((8, 140), np.bool_)
    masks[4, 5] = False
    masks[5, 70:] = False
    for params in (GREEDY, SamplingParams(1.0, top_p=0.9, top_k=5)):
        rows = rows_of(device, [params] * 8, [0.0] * 8)
        out = sample(logits.to(device), rows, packed(masks, 5, device)).tolist()
        assert out == [-1, -1, -1, -1, -1, -1, 0, 0]
        for i, token in enumerate(out):
            draw = [Draw(params, allowed=masks[i])]
            if token < 0:
                with pytest.raises(NotFinite):
                    sampler.sample(logits[i : i + 1].numpy(), draw)
            else:
                sampler.sample(logits[i : i + 1].numpy(), draw)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "params"),
    [
        pytest.param(160, SamplingParams(1.2), marks=pytest.mark.slow),
        pytest.param(32, SamplingParams(0.8, top_k=6), marks=pytest.mark.slow),
        (32, SamplingParams(1.0, top_p=0.8)),
        pytest.param(400, SamplingParams(0.8, top_k=6), marks=pytest.mark.slow),
        pytest.param(400, SamplingParams(1.0, top_p=0.8), marks=pytest.mark.slow),
        pytest.param(400, SamplingParams(1.0, 0.9, 8, 0.02), marks=pytest.mark.slow),
    ],
)
def test_tokens_are_distributed_as_the_hosts(device, n, params):
    """Chi-square, over seeds: of the kernels' draws and of the host's, against the shares."""
    vocab = 16
    row = logits_of(5, 1, vocab, torch.bfloat16, None)[0]
    share = shares(row, Draw(params))
    logits = torch.from_numpy(row).to(device, torch.bfloat16).expand(n, -1)
    more = {"any_top_k": params.top_k > 0, "any_top_p": params.top_p < 1}
    rows = rows_of(device, [params] * n, [uniform(seed, 3) for seed in range(n)], **more)
    draws = [Draw(replace(params, seed=seed), 3) for seed in range(n)]
    for tokens in (
        sample(logits, rows).tolist(),
        sampler.sample(np.repeat(row[None], n, 0), draws),
    ):
        counts = np.bincount(tokens, minlength=vocab)
        assert not counts[share == 0].any()
        wanted = n * share[share > 0]
        statistic = ((counts[share > 0] - wanted) ** 2 / wanted).sum()
        assert statistic < 2.5 * (share > 0).sum() + 12  # p < 1e-3 for 1 to 16 tokens


def adjustments_of(device, draws, dtype=torch.float64):
    """The lists of what the host's draws say."""

    def tensor(values, dtype):
        return torch.tensor(values, dtype=dtype, device=device)

    seen_starts, seen_ids, counts = [0], [], []
    bias_starts, bias_ids, biases = [0], [], []
    for draw in draws:
        if draw.penalties is not None:
            ids = np.flatnonzero(draw.penalties.seen)
            seen_ids += ids.tolist()
            counts += draw.penalties.counts[ids].tolist()
        bias = (*draw.params.logit_bias, *((token, float("-inf")) for token in draw.banned))
        bias_ids += [token for token, _ in bias]
        biases += [value for _, value in bias]
        seen_starts.append(len(seen_ids))
        bias_starts.append(len(bias_ids))
    padding = [1 << 30] * 3
    return Adjustments(
        tensor(seen_starts, torch.int32),
        tensor(seen_ids + padding, torch.int32),
        tensor(counts + padding, torch.float32),
        tensor([d.params.repetition_penalty for d in draws], dtype),
        tensor([d.params.frequency_penalty for d in draws], dtype),
        tensor([d.params.presence_penalty for d in draws], dtype),
        tensor(bias_starts, torch.int32),
        tensor(bias_ids + padding, torch.int32),
        tensor(biases + padding, torch.float32),
    )


@examples(40)
@given(
    vocab=st.sampled_from([5, 40, 1200]),
    n=st.integers(1, 3),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 1000),
)
def test_adjusted_logits_are_the_hosts(device, vocab, n, dtype, seed):
    random = np.random.default_rng(seed)
    logits = logits_of(seed, n, vocab, torch.float32, None)
    logits[:, seed % vocab] = -np.inf
    draws = []
    for _ in range(n):
        state = Penalties(random.integers(0, vocab, 3 * vocab // 4), vocab)
        for token in random.integers(0, vocab, 20):
            state.add(token)
        tokens = random.permutation(vocab)[:4].tolist()
        bias = tuple(zip(tokens, (1.0, -2.5, 100.0, -100.0), strict=True))
        params = SamplingParams(
            frequency_penalty=float(random.choice([0.0, 0.7, -0.3])),
            presence_penalty=float(random.choice([0.0, 0.3])),
            repetition_penalty=float(random.choice([1.0, 1.3, 0.8])),
            logit_bias=bias,
        )
        penalties = state if random.random() < 0.8 else None
        banned = tuple(random.integers(0, vocab, 2).tolist()) if random.random() < 0.5 else ()
        draws.append(Draw(params, penalties=penalties, banned=banned))
    out = torch.from_numpy(logits).to(device, copy=True)
    adjust(out, adjustments_of(device, draws, dtype))
    for row, draw in zip(logits, draws, strict=True):
        sampler._adjust(row, draw)
    if dtype == torch.float64 and device == "cpu":
        assert np.array_equal(out.numpy(), logits)
    torch.testing.assert_close(out.cpu(), torch.from_numpy(logits), rtol=1e-6, atol=1e-6)


def test_tokens_are_drawn_from_adjusted_logits(device):
    logits = logits_of(3, 2, 60, torch.float32, None)
    state = Penalties(np.arange(30), 60)
    state.add(int(logits[0].argmax()))
    draws = [
        Draw(SamplingParams(presence_penalty=50.0), penalties=state),
        Draw(SamplingParams(logit_bias=((8, 60.0),)), banned=(int(logits[1].argmax()),)),
    ]
    rows = rows_of(device, [GREEDY] * 2, [0.0] * 2)
    given_logits = torch.from_numpy(logits).to(device, copy=True)
    out = sample(given_logits, rows, adjust=adjustments_of(device, draws))
    assert out.tolist() == sampler.sample(logits, draws)
    assert out[1] == 8


@examples(20)
@given(
    vocab=st.sampled_from([1, 100, 4096, 5000]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    seed=st.integers(0, 1000),
)
def test_log_probabilities(device, vocab, dtype, seed):
    logits = torch.from_numpy(logits_of(seed, 3, vocab, dtype, None)).to(dtype) + 5
    random = torch.Generator().manual_seed(seed)
    index_rows = torch.randint(0, 3, (7,), generator=random)
    tokens = torch.randint(0, vocab, (7,), generator=random)
    out = log_probabilities(logits.to(device), index_rows.to(device), tokens.to(device)).cpu()
    assert out.dtype == torch.float32
    exact = logits.double().log_softmax(-1)[index_rows, tokens]
    torch.testing.assert_close(out.double(), exact, rtol=1e-5, atol=1e-5)


def test_log_probabilities_of_what_has_none(device):
    inf, nan = float("inf"), float("nan")
    logits = torch.zeros(6, 5000, device=device)
    logits[0, :4999] = -inf
    logits[1, 4500] = nan
    logits[2, 1] = inf
    logits[3] = -inf
    index_rows = torch.tensor([0, 0, 1, 2, 3, -1, 6, 4, 4, 5], device=device)
    tokens = torch.tensor([4999, 0, 0, 0, 0, 0, 0, -1, 5000, 1], device=device)
    out = log_probabilities(logits, index_rows, tokens).cpu()
    assert out[:2].tolist() == [0.0, -inf]
    assert out[2:9].isnan().all()
    assert out[9].item() == pytest.approx(-np.log(5000))


def test_no_rows(device):
    none = torch.empty(0, 50, device=device)
    assert sample(none, rows_of(device, [], [])).shape == (0,)
    index = torch.empty(0, dtype=torch.int64, device=device)
    assert log_probabilities(none, index, index).shape == (0,)
    adjust(none, adjustments_of(device, []))


def test_what_does_not_fit_is_refused(device):
    rows = rows_of(device, [GREEDY] * 2, [0.5] * 2)
    logits = torch.zeros(2, 64, device=device)
    masks = torch.zeros(2, 2, dtype=torch.int32, device=device)
    lists = adjustments_of(device, [Draw(GREEDY)] * 2)
    index = torch.zeros(2, dtype=torch.int64, device=device)
    for bad in (
        lambda: sample(logits[:1], rows),
        lambda: sample(logits.double(), rows),
        lambda: sample(logits[0], rows),
        lambda: sample(torch.zeros(64, 2, device=device).T, rows),
        lambda: sample(torch.zeros(2, (1 << 19) + 1, device=device), rows),
        lambda: sample(logits, rows, masks[:, :1]),
        lambda: sample(logits, rows, masks.long()),
        lambda: sample(logits, rows, masks[:1]),
        lambda: sample(logits.half(), rows, adjust=lists),
        lambda: sample(logits, rows, adjust=adjustments_of(device, [Draw(GREEDY)])),
        lambda: replace(rows, top_k=rows.top_k.long()),
        lambda: replace(rows, min_p=rows.min_p[:1]),
        lambda: replace(rows, temperature=rows.temperature.double()),
        lambda: replace(rows, is_masked=rows.top_k),
        lambda: replace(lists, counts=lists.counts.int()),
        lambda: replace(lists, seen_starts=lists.seen_starts[:1]),
        lambda: replace(lists, bias_ids=lists.bias_ids[:1]),
        lambda: log_probabilities(logits, index[:1], index),
        lambda: log_probabilities(logits, index.int(), index),
        lambda: log_probabilities(logits.double(), index, index),
    ):
        with pytest.raises(AssertionError):
            bad()
