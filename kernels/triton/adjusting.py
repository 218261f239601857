"""Penalties and biases, added to logits on the device by the rules of the host's sampler."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK, _WARPS, _N_PROGRAMS = 512, 4, 8  # programs a row; each goes over every eighth block


@dataclass(frozen=True, slots=True)
class Adjustments:
    """Penalties and biases of n rows: lists of only the tokens that they change, on the device.

    seen_starts: [n + 1], int32, into seen_ids: [m], int32, the ids that a row's prompt or its
    generation has, each once. counts: [m], float32, how often each was generated. repetition,
    frequency, presence: [n], float32 or float64 (with which they are the host's to the last bit).
    bias_starts: [n + 1], int32, into bias_ids, int32, and biases, float32, which are added in any
    order; -inf bans a token. The lists may be longer than their last start.
    """

    seen_starts: Tensor
    seen_ids: Tensor
    counts: Tensor
    repetition: Tensor
    frequency: Tensor
    presence: Tensor
    bias_starts: Tensor
    bias_ids: Tensor
    biases: Tensor

    def __post_init__(self) -> None:
        n = len(self.repetition)
        for each in (self.seen_starts, self.bias_starts):
            assert each.shape == (n + 1,), "starts are no [n + 1]"
            assert each.dtype == torch.int32, "starts are no int32"
        for ids, numbers in ((self.seen_ids, self.counts), (self.bias_ids, self.biases)):
            assert ids.ndim == 1, "ids are no list"
            assert ids.shape == numbers.shape, "ids and their numbers differ in length"
            assert ids.dtype == torch.int32, "ids are no int32"
            assert numbers.dtype == torch.float32, "counts and biases are float32"
        for each in (self.repetition, self.frequency, self.presence):
            assert each.shape == (n,), "rows differ in number"
            assert each.dtype in (torch.float32, torch.float64), "penalties are floats"
            assert each.dtype == self.repetition.dtype, "penalties differ in dtype"

    def apply(self, logits: Tensor) -> None:
        """See `adjust`."""
        assert logits.ndim == 2, "logits are no [n, vocab]"
        assert logits.dtype == torch.float32, "only float32 logits are adjusted"
        assert logits.stride(1) == 1, "the logits' rows are not contiguous"
        n, vocab = logits.shape
        assert n == len(self.repetition), "logits and adjustments differ in number"
        if n == 0:
            return
        how = {"BLOCK": _BLOCK, "num_warps": _WARPS}
        grid = (_N_PROGRAMS, n)
        _penalize[grid](
            logits, self.seen_starts, self.seen_ids, self.counts, self.repetition, self.frequency,
            self.presence, logits.stride(0), vocab, **how,
        )  # fmt: skip
        _bias[grid](
            logits, self.bias_starts, self.bias_ids, self.biases, logits.stride(0), vocab, **how
        )


def adjust(logits: Tensor, adjustments: Adjustments) -> None:
    """Adds penalties, then biases, in place. logits: [n, vocab], float32, rows with any stride; ids
    beyond them are left out. Raises AssertionError for shapes and dtypes that do not fit."""
    adjustments.apply(logits)


@triton.jit
def _penalize(
    logits, starts, ids, counts, repetition, frequency, presence, stride, vocab,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(1).to(tl.int64)
    end = tl.load(starts + row + 1)
    factor = tl.load(repetition + row)
    per_count = tl.load(frequency + row).to(tl.float32)
    for_any = tl.load(presence + row).to(tl.float64)
    first = tl.load(starts + row) + tl.program_id(0) * BLOCK
    for at in range(first, end, tl.num_programs(0) * BLOCK):
        item = at + tl.arange(0, BLOCK)
        token = tl.load(ids + item, mask=item < end, other=-1)
        count = tl.load(counts + item, mask=item < end, other=0.0)
        is_in = (token >= 0) & (token < vocab)
        place = logits + row * stride + token
        x = tl.load(place, mask=is_in, other=0.0)
        x *= tl.where(x > 0, (1 / factor).to(tl.float32), factor.to(tl.float32))
        x -= per_count * count
        x = tl.where(count > 0, (x.to(tl.float64) - for_any).to(tl.float32), x)
        tl.store(place, x, mask=is_in)


@triton.jit
def _bias(logits, starts, ids, biases, stride, vocab, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    end = tl.load(starts + row + 1)
    first = tl.load(starts + row) + tl.program_id(0) * BLOCK
    for at in range(first, end, tl.num_programs(0) * BLOCK):
        item = at + tl.arange(0, BLOCK)
        token = tl.load(ids + item, mask=item < end, other=-1)
        bias = tl.load(biases + item, mask=item < end, other=0.0)
        is_in = (token >= 0) & (token < vocab)
        tl.atomic_add(logits + row * stride + token, bias, mask=is_in, sem="relaxed")
