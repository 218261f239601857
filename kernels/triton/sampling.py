"""Draws the next token of each row on the device, as runtime/engine/step/sampler.py does on the
host: the same steps in the same order, and the same tokens kept, without sorting.

The number that decides a draw goes through the inverse of the cumulative distribution over the kept
tokens by id, not by likelihood as on the host: the same distribution, but other tokens for a seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from sgc.kernels.triton.adjusting import Adjustments, adjust
from sgc.kernels.triton.cuts import DIGIT_BITS, N_STATE, N_TOTALS, cut_of, search
from sgc.kernels.triton.keys import (
    best_id,
    best_number,
    key_of,
    load_row,
    masked,
    number_of,
    packed_best,
    weight_of,
)
from sgc.kernels.triton.scores import log_probabilities

__all__ = ["Adjustments", "SamplingRows", "adjust", "log_probabilities", "sample"]

MAX_VOCAB = 1 << 19  # so that a row's weights add up exactly (keys.py)
_CHUNK, _WARPS = 4096, 8  # tokens a program looks at
# How many of a key's bits its dtype leaves out: bfloat16 has 16 bits of float32's, float16 19.
_LOW_BITS = {torch.float32: 0, torch.bfloat16: 16, torch.float16: 13}


@dataclass(frozen=True, slots=True)
class SamplingRows:
    """How to sample each row: [n] each, on the device.

    temperature: float32; under 1e-5 the largest logit wins. top_k: int32, 0 or less for all.
    top_p: float32 or float64, 1 for all. min_p: float32, 0 for all. point: float32 or float64 in
    [0, 1), which decides the draw (the host's `uniform`). is_masked: bool, which rows `allowed` is
    for; None for all. any_drawn, any_top_k, any_top_p: False says that no row needs that, and saves its
    launches. Top-p's cut is the host's only for a float64 top_p.
    """

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    min_p: Tensor
    point: Tensor
    is_masked: Tensor | None = None
    any_drawn: bool = True
    any_top_k: bool = True
    any_top_p: bool = True

    def __post_init__(self) -> None:
        floats = (torch.float32, torch.float64)
        for tensor, dtypes in (
            (self.temperature, floats[:1]),
            (self.top_k, (torch.int32,)),
            (self.top_p, floats),
            (self.min_p, floats[:1]),
            (self.point, floats),
            (self.is_masked, (torch.bool,)),
        ):
            if tensor is not None:
                assert tensor.shape == (self.n,), "rows differ in number"
                assert tensor.dtype in dtypes, f"{tensor.dtype}, not one of {dtypes}"
                assert tensor.is_contiguous(), "rows are not contiguous"

    @property
    def n(self) -> int:
        return len(self.temperature)


def sample(
    logits: Tensor,
    rows: SamplingRows,
    allowed: Tensor | None = None,
    adjust: Adjustments | None = None,
) -> Tensor:
    """Draws one token for each row: [n], int64; -1 for a row with a NaN, an infinity or no token.

    logits: [n, vocab], float32, bfloat16 or float16, rows with any stride; left unchanged unless
    adjust is given. allowed: int32, [n, at least ceil(vocab / 32)], a bit for each token, the least
    first, or None. adjust: penalties and biases, which are added to the (float32) logits in place.
    Raises AssertionError for shapes and dtypes that do not fit.
    """
    assert logits.ndim == 2, "logits are no [n, vocab]"
    n, vocab = logits.shape
    assert n == rows.n, "logits and rows differ in number"
    assert 0 < vocab <= MAX_VOCAB, f"a vocabulary of {vocab}; at most {MAX_VOCAB}"
    assert logits.dtype in _LOW_BITS, f"logits of {logits.dtype}"
    assert logits.stride(1) == 1, "the logits' rows are not contiguous"
    if allowed is not None:
        assert allowed.dtype == torch.int32, "allowed is no int32"
        assert allowed.ndim == 2, "allowed is no [n, words]"
        assert len(allowed) == n, "logits and allowed differ in number"
        assert 32 * allowed.shape[1] >= vocab, "allowed has too few bits"
        assert allowed.stride(1) == 1, "allowed's rows are not contiguous"
    if adjust is not None:
        adjust.apply(logits)
    if n == 0:
        return torch.empty(0, dtype=torch.int64, device=logits.device)
    return _sample(logits, rows, allowed)


def _sample(logits: Tensor, rows: SamplingRows, allowed: Tensor | None) -> Tensor:
    n, vocab = logits.shape
    low = _LOW_BITS[logits.dtype]
    chunk = min(_CHUNK, max(128, triton.next_power_of_2(vocab)))
    n_chunks, n_passes = triton.cdiv(vocab, chunk), triton.cdiv(32 - low, DIGIT_BITS)
    grid = (n_chunks, n)

    def made(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.int64, device=logits.device)

    # One array, so that it is zeroed once: each row's best, and the totals of its searches.
    zeroed = made(n * (1 + 2 * n_passes * N_TOTALS)).zero_()
    packed, totals = zeroed[:n], zeroed[n:]
    state, masses, equals = made(n, 2, n_passes, N_STATE), made(n, n_chunks), made(n, n_chunks)
    cuts, tokens = made(n, 2), made(n)
    row = logits, allowed, rows.is_masked
    strides = logits.stride(0), 0 if allowed is None else allowed.stride(0), vocab
    _best[grid](*row, packed, *strides, CHUNK=chunk, num_warps=_WARPS)
    how = packed, rows.temperature, rows.top_k, rows.top_p
    any_top_k, any_top_p = rows.any_drawn and rows.any_top_k, rows.any_drawn and rows.any_top_p
    flags = {"ANY_TOP_K": any_top_k, "LOW": low, "CHUNK": chunk, "num_warps": _WARPS}
    for is_mass, is_needed in ((False, any_top_k), (True, any_top_p)):
        for i in range(n_passes if is_needed else 0):
            search[grid](*row, *how, totals, state, *strides, i, n_passes, IS_MASS=is_mass, **flags)
    flags["ANY_TOP_P"] = any_top_p
    if rows.any_drawn:
        _masses[grid](
            *row, *how, rows.min_p, totals, state, cuts, masses, equals, *strides, n_passes, **flags
        )
    _draw[(n,)](
        *row, packed, rows.temperature, rows.min_p, rows.point, cuts, masses, equals, tokens,
        *strides, n_chunks, CHUNKS=triton.next_power_of_2(n_chunks), LOW=low, CHUNK=chunk,
        num_warps=_WARPS,
    )  # fmt: skip
    return tokens


@triton.jit
def _best(
    logits, allowed, is_masked, packed, logits_stride, allowed_stride, vocab, CHUNK: tl.constexpr
):  # fmt: skip
    row = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    raw = load_row(logits, logits_stride, row, column, vocab)
    x = masked(raw, allowed, allowed_stride, is_masked, row, column, vocab)
    tl.atomic_max(packed + row, tl.max(packed_best(x, raw, column), 0), sem="relaxed")


@triton.jit
def _masses(
    logits, allowed, is_masked, packed, temperatures, top_k, top_p, min_ps, totals, state, cuts,
    masses, equals, logits_stride, allowed_stride, vocab, n_passes, ANY_TOP_K: tl.constexpr,
    ANY_TOP_P: tl.constexpr, LOW: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """The weight of what stays of each part of a row, and how many tokens there are at the cut."""
    row = tl.program_id(1).to(tl.int64)
    chunk = tl.program_id(0)
    temperature = tl.load(temperatures + row)
    best_packed = tl.load(packed + row)
    if (temperature < 1e-5) | (best_id(best_packed) < 0):
        return
    best = best_number(best_packed)
    least, n_equal = cut_of(
        row, n_passes, top_k, top_p, best, temperature, vocab, totals, state,
        ANY_TOP_K, ANY_TOP_P, LOW,
    )  # fmt: skip
    if chunk == 0:
        tl.store(cuts + row * 2, least)
        tl.store(cuts + row * 2 + 1, n_equal)
    column = chunk * CHUNK + tl.arange(0, CHUNK)
    x = load_row(logits, logits_stride, row, column, vocab)
    x = masked(x, allowed, allowed_stride, is_masked, row, column, vocab)
    key = key_of(x, LOW).to(tl.int64)
    weight = weight_of(x, best, temperature, tl.load(min_ps + row))
    is_equal = (key == least - 1) & (column < vocab)
    at = row * tl.num_programs(0) + chunk
    tl.store(masses + at, tl.sum(tl.where(key >= least, weight, 0), 0))
    tl.store(equals + at, tl.sum(is_equal.to(tl.int64), 0))


@triton.jit
def _draw(
    logits, allowed, is_masked, packed, temperatures, min_ps, points, cuts, masses, equals, tokens,
    logits_stride, allowed_stride, vocab, n_chunks,
    CHUNKS: tl.constexpr, LOW: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Finds the part that has the drawn token, then the token in it: a program for each row."""
    row = tl.program_id(0).to(tl.int64)
    temperature = tl.load(temperatures + row)
    best_packed = tl.load(packed + row)
    greedy = best_id(best_packed)
    if (temperature < 1e-5) | (greedy < 0):
        tl.store(tokens + row, greedy)
        return
    best, min_p = best_number(best_packed), tl.load(min_ps + row)
    least, n_equal = tl.load(cuts + row * 2), tl.load(cuts + row * 2 + 1)
    part = tl.arange(0, CHUNKS)
    at = row * n_chunks + part
    mass = tl.load(masses + at, mask=part < n_chunks, other=0)
    if n_equal > 0:
        count = tl.load(equals + at, mask=part < n_chunks, other=0)
        n_before = tl.cumsum(count, 0) - count
        n_kept = tl.minimum(tl.maximum(n_equal - n_before, 0), count)
        mass += n_kept * weight_of(number_of(least - 1, LOW), best, temperature, min_p)
    whole = tl.sum(mass, 0)
    point = (tl.load(points + row).to(tl.float64) * whole.to(tl.float64)).to(tl.int64)
    point = tl.minimum(point, whole - 1)
    chosen = tl.sum((tl.cumsum(mass, 0) <= point).to(tl.int32), 0)
    point -= tl.sum(tl.where(part < chosen, mass, 0), 0)

    column = chosen * CHUNK + tl.arange(0, CHUNK)
    x = load_row(logits, logits_stride, row, column, vocab)
    x = masked(x, allowed, allowed_stride, is_masked, row, column, vocab)
    key = key_of(x, LOW).to(tl.int64)
    weight = weight_of(x, best, temperature, min_p)
    stays = key >= least
    if n_equal > 0:
        n_equal -= tl.sum(tl.load(equals + at, mask=part < chosen, other=0), 0)
        is_equal = (key == least - 1) & (column < vocab)
        rank = tl.cumsum(is_equal.to(tl.int32), 0)
        stays = stays | (is_equal & (rank <= n_equal))
    reached = tl.cumsum(tl.where(stays, weight, 0), 0) <= point
    tl.store(tokens + row, chosen * CHUNK + tl.sum(reached.to(tl.int32), 0))
