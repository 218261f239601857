"""Log probabilities of chosen tokens, so that no logits need go to the host."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_CHUNK, _WARPS = 4096, 8
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


def log_probabilities(logits: Tensor, index_rows: Tensor, tokens: Tensor) -> Tensor:
    """The log-softmax of chosen pairs: [m], float32.

    logits: [n, vocab], float32, bfloat16 or float16, rows with any stride. index_rows, tokens: [m],
    int64. A pair that is out of range, as padding is, gives NaN, and so does a row with a NaN, an
    infinity or only -inf. Raises AssertionError for shapes and dtypes that do not fit.
    """
    assert logits.ndim == 2, "logits are no [n, vocab]"
    assert logits.dtype in _FLOATS, f"logits of {logits.dtype}"
    assert logits.stride(1) == 1, "the logits' rows are not contiguous"
    (n, vocab), m = logits.shape, len(tokens)
    for each in (index_rows, tokens):
        assert each.shape == (m,), "rows and tokens are no pairs"
        assert each.dtype == torch.int64, "rows and tokens are int64"
        assert each.is_contiguous(), "rows or tokens are not contiguous"
    out = torch.full((m,), float("nan"), dtype=torch.float32, device=logits.device)
    if n == 0 or m == 0:
        return out
    n_chunks = triton.cdiv(vocab, _CHUNK)
    best, total = torch.empty((2, n, n_chunks), dtype=torch.float32, device=logits.device)
    _sums[(n_chunks, n)](
        logits, best, total, logits.stride(0), vocab, CHUNK=_CHUNK, num_warps=_WARPS
    )
    _scores[(m,)](
        logits, index_rows, tokens, best, total, out, logits.stride(0), n, vocab, n_chunks,
        CHUNKS=triton.next_power_of_2(n_chunks), num_warps=1,
    )  # fmt: skip
    return out


@triton.jit
def _sums(logits, best, total, stride, vocab, CHUNK: tl.constexpr):
    """Each part's largest logit, and the sum of exponentials less that."""
    row = tl.program_id(1).to(tl.int64)
    chunk = tl.program_id(0)
    column = chunk * CHUNK + tl.arange(0, CHUNK)
    at = logits + row * stride + column
    x = tl.load(at, mask=column < vocab, other=float("-inf")).to(tl.float32)
    largest = tl.max(x, 0)
    largest = tl.where(largest == float("-inf"), 0.0, largest)
    at = row * tl.num_programs(0) + chunk
    tl.store(best + at, largest)
    tl.store(total + at, tl.sum(tl.exp(x - largest), 0))


@triton.jit
def _scores(
    logits, index_rows, tokens, best, total, out, stride, n, vocab, n_chunks, CHUNKS: tl.constexpr
):  # fmt: skip
    pair = tl.program_id(0)
    row, token = tl.load(index_rows + pair), tl.load(tokens + pair)
    if (row < 0) | (row >= n) | (token < 0) | (token >= vocab):
        return
    part = tl.arange(0, CHUNKS)
    at = row * n_chunks + part
    largest = tl.load(best + at, mask=part < n_chunks, other=float("-inf"))
    sums = tl.load(total + at, mask=part < n_chunks, other=0.0)
    of_all = tl.max(tl.where(sums == 0, float("-inf"), largest), 0)
    whole = tl.sum(tl.where(sums == 0, 0.0, sums * tl.exp(largest - of_all)), 0)
    x = tl.load(logits + row * stride + token).to(tl.float32)
    tl.store(out + pair, x - of_all - tl.log(whole))
