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
from sgc.kernels.triton.cuts import N_PARTS, finish, gather, row_keys, totals
from sgc.kernels.triton.keys import best_id, load_row, masked, packed_best, weight_of
from sgc.kernels.triton.scores import log_probabilities

__all__ = ["Adjustments", "SamplingRows", "adjust", "log_probabilities", "sample"]

MAX_VOCAB = 1 << 19  # so that a row's weights add up exactly (keys.py)
_CHUNK, _WARPS = 4096, 8  # tokens that a program processes
_LIST = 2048  # keys that a search for a cut processes at once
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True, slots=True)
class SamplingRows:
    """How to sample each row: [n] each, on the device.

    temperature: float32; under 1e-5 the largest logit wins. top_k: int32, 0 or less for all.
    top_p: float32 or float64, 1 for all. min_p: float32, 0 for all. point: float32 or float64 in
    [0, 1), which decides the draw (the host's `uniform`). is_masked: bool, which rows `allowed`
    is for; None for all. any_drawn, any_top_k, any_top_p: False says that no row needs that,
    and saves its launches. Top-p's cut is the host's only for a float64 top_p.
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
    assert logits.dtype in _DTYPES, f"logits of {logits.dtype}"
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
    chunk = min(_CHUNK, max(128, triton.next_power_of_2(vocab)))
    n_chunks = triton.cdiv(vocab, chunk)
    grid, how = (n_chunks, n), {"CHUNK": chunk, "num_warps": _WARPS}

    def made(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.int64, device=logits.device)

    # One array, so that it is zeroed once: each row's best, sums, and length of its list.
    zeroed = made(n * (2 + N_PARTS)).zero_()
    packed, lengths, sums = zeroed[:n], zeroed[n : 2 * n], zeroed[2 * n :]
    cuts, masses, equals, tokens = made(n, 2), made(n, n_chunks), made(n, n_chunks), made(n)
    row = logits, allowed, rows.is_masked
    strides = logits.stride(0), 0 if allowed is None else allowed.stride(0), vocab
    _best[grid](*row, packed, *strides, **how)
    drawn = packed, rows.temperature
    is_cut = rows.any_drawn and (rows.any_top_k or rows.any_top_p)
    if is_cut:
        lists = torch.empty((n, vocab), dtype=torch.int32, device=logits.device)
        cut = *drawn, rows.top_k, rows.top_p, sums
        totals[grid](*row, *cut, *strides, **how)
        gather[grid](*row, *cut, lists, lengths, *strides, **how)
        finish[(n,)](*cut, lists, lengths, cuts, vocab, BLOCK=min(_LIST, chunk), num_warps=_WARPS)
    how["IS_CUT"] = is_cut
    if rows.any_drawn:
        _masses[grid](*row, *drawn, rows.min_p, cuts, masses, equals, *strides, **how)
    _draw[(n,)](
        *row, *drawn, rows.min_p, rows.point, cuts, masses, equals, tokens, *strides, n_chunks,
        CHUNKS=triton.next_power_of_2(n_chunks), **how,
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
def _cut(cuts, row, IS_CUT: tl.constexpr):
    least, n_equal = row * 0, row * 0
    if IS_CUT:
        least, n_equal = tl.load(cuts + row * 2), tl.load(cuts + row * 2 + 1)
    return least.to(tl.int32), n_equal


@triton.jit
def _masses(
    logits, allowed, is_masked, packed, temperatures, min_ps, cuts, masses, equals, logits_stride,
    allowed_stride, vocab, IS_CUT: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """The weight of the tokens kept in each part of a row, and how many tokens are at the cut."""
    row = tl.program_id(1).to(tl.int64)
    chunk = tl.program_id(0)
    if (tl.load(temperatures + row) < 1e-5) | (best_id(tl.load(packed + row)) < 0):
        return
    least, n_equal = _cut(cuts, row, IS_CUT)
    column = chunk * CHUNK + tl.arange(0, CHUNK)
    key = row_keys(
        logits, allowed, is_masked, packed, temperatures, row, column, logits_stride,
        allowed_stride, vocab,
    )  # fmt: skip
    weight = weight_of(key, tl.minimum(tl.load(min_ps + row), 1.0))
    at = row * tl.num_programs(0) + chunk
    tl.store(masses + at, tl.sum(tl.where(key >= least, weight, 0), 0))
    if n_equal > 0:
        tl.store(equals + at, tl.sum((key == least - 1).to(tl.int32), 0).to(tl.int64))


@triton.jit
def _draw(
    logits, allowed, is_masked, packed, temperatures, min_ps, points, cuts, masses, equals, tokens,
    logits_stride, allowed_stride, vocab, n_chunks,
    CHUNKS: tl.constexpr, IS_CUT: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Finds the part that has the drawn token, then the token in it: a program for each row."""
    row = tl.program_id(0).to(tl.int64)
    greedy = best_id(tl.load(packed + row))
    if (tl.load(temperatures + row) < 1e-5) | (greedy < 0):
        tl.store(tokens + row, greedy)
        return
    min_p = tl.minimum(tl.load(min_ps + row), 1.0)
    least, n_equal = _cut(cuts, row, IS_CUT)
    part = tl.arange(0, CHUNKS)
    at = row * n_chunks + part
    mass = tl.load(masses + at, mask=part < n_chunks, other=0)
    if n_equal > 0:
        count = tl.load(equals + at, mask=part < n_chunks, other=0)
        n_before = tl.cumsum(count, 0) - count
        n_kept = tl.minimum(tl.maximum(n_equal - n_before, 0), count)
        mass += n_kept * weight_of(least - 1, min_p)
    whole = tl.sum(mass, 0)
    point = (tl.load(points + row).to(tl.float64) * whole.to(tl.float64)).to(tl.int64)
    point = tl.minimum(point, whole - 1)
    chosen = tl.sum((tl.cumsum(mass, 0) <= point).to(tl.int32), 0)
    point -= tl.sum(tl.where(part < chosen, mass, 0), 0)

    column = chosen * CHUNK + tl.arange(0, CHUNK)
    key = row_keys(
        logits, allowed, is_masked, packed, temperatures, row, column, logits_stride,
        allowed_stride, vocab,
    )  # fmt: skip
    stays = key >= least
    if n_equal > 0:
        n_equal -= tl.sum(tl.load(equals + at, mask=part < chosen, other=0), 0)
        is_equal = key == least - 1
        stays = stays | (is_equal & (tl.cumsum(is_equal.to(tl.int32), 0) <= n_equal))
    reached = tl.cumsum(tl.where(stays, weight_of(key, min_p), 0), 0) <= point
    tl.store(tokens + row, chosen * CHUNK + tl.sum(reached.to(tl.int32), 0))
