"""Draws as a device's sampler takes them: arrays of all rows, and lists of the few tokens that
penalties, biases and bans change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sgc.kernels.triton.sampling import Adjustments, SamplingRows
from sgc.runtime.engine.ints import Ints
from sgc.runtime.engine.model.device.graphs import pinned
from sgc.runtime.engine.requests.draws import Draw

# Bytes. Triton compiles a kernel anew for pointers that are not so aligned, while a step waits.
_ALIGNED = 16
_DTYPES = {
    np.dtype(np.float64): torch.float64,
    np.dtype(np.float32): torch.float32,
    np.dtype(np.int32): torch.int32,
    np.dtype(np.bool_): torch.bool,
}


@dataclass(frozen=True, slots=True)
class SentDraws:
    """allowed: [n, words], a bit for each token."""

    rows: SamplingRows
    allowed: Tensor | None
    adjustments: Adjustments | None


def send(draws: Sequence[Draw], vocab_size: int, device: torch.device) -> SentDraws:
    is_adjusted = any(draw.penalties or draw.banned or draw.params.logit_bias for draw in draws)
    return SentDraws(
        _rows(draws, device),
        _allowed(draws, vocab_size, device),
        _adjustments(draws, device) if is_adjusted else None,
    )


def _rows(draws: Sequence[Draw], device: torch.device) -> SamplingRows:
    if all(draw.params.is_greedy and draw.allowed is None for draw in draws):
        return _greedy(len(draws), device)
    params = [draw.params for draw in draws]
    points = [0.0 if one.is_greedy else draw.point for one, draw in zip(params, draws, strict=True)]
    masked = [draw.allowed is not None for draw in draws]
    top_k = [max(0, one.top_k) for one in params]
    top_p, point, temperature, min_p, top_k_sent, is_masked = _together(
        [
            np.array([one.top_p for one in params], np.float64),
            np.array(points, np.float64),
            np.array([one.temperature for one in params], np.float32),
            np.array([one.min_p for one in params], np.float32),
            np.array(top_k, np.int32),
            np.array(masked, np.bool_),
        ],
        device,
    )
    return SamplingRows(
        temperature, top_k_sent, top_p, min_p, point, is_masked if any(masked) else None,
        any_drawn=any(not one.is_greedy for one in params),
        any_top_k=any(top_k), any_top_p=any(one.top_p < 1 for one in params),
    )  # fmt: skip


@lru_cache(maxsize=64)
def _greedy(n: int, device: torch.device) -> SamplingRows:
    """Most steps' draws: kept on the device, as they are the same each time."""
    floats, wide = torch.zeros(n, device=device), torch.zeros(n, dtype=torch.float64, device=device)
    top_k = torch.zeros(n, dtype=torch.int32, device=device)
    return SamplingRows(
        floats, top_k, wide + 1, floats, wide, any_drawn=False, any_top_k=False, any_top_p=False
    )


def _together(arrays: Sequence[npt.NDArray[Any]], device: torch.device) -> list[Tensor]:
    """The arrays on a device, by one copy."""
    sizes = [-(-array.nbytes // _ALIGNED) * _ALIGNED for array in arrays]
    host = np.zeros(sum(sizes), np.uint8)
    for start, array in zip(np.cumsum([0, *sizes]), arrays, strict=False):
        host[start : start + array.nbytes] = array.view(np.uint8)
    sent = pinned(torch.from_numpy(host), device).to(device, non_blocking=True)
    return [
        part[: array.nbytes].view(_DTYPES[array.dtype])
        for part, array in zip(torch.split(sent, sizes), arrays, strict=True)
    ]


def _allowed(draws: Sequence[Draw], vocab_size: int, device: torch.device) -> Tensor | None:
    if all(draw.allowed is None for draw in draws):
        return None
    words = np.zeros((len(draws), -(-vocab_size // 32)), np.int32)
    for row, draw in zip(words.view(np.uint8), draws, strict=True):
        if draw.allowed is not None:
            packed = np.packbits(draw.allowed, bitorder="little")
            row[: len(packed)] = packed
    return torch.from_numpy(words).to(device, non_blocking=True)


def _adjustments(draws: Sequence[Draw], device: torch.device) -> Adjustments:
    params = [draw.params for draw in draws]
    seen = [_seen(draw) for draw in draws]
    counts = [
        np.zeros(0, np.float32) if draw.penalties is None else draw.penalties.counts[ids]
        for draw, ids in zip(draws, seen, strict=True)
    ]
    biases = [[*draw.params.logit_bias, *((i, -np.inf) for i in draw.banned)] for draw in draws]
    return Adjustments(
        _starts(map(len, seen), device),
        _ints(np.concatenate(seen), device),
        torch.from_numpy(np.concatenate(counts)).to(device, non_blocking=True),
        _wide([one.repetition_penalty for one in params], device),
        _wide([one.frequency_penalty for one in params], device),
        _wide([one.presence_penalty for one in params], device),
        _starts(map(len, biases), device),
        _ints(np.array([i for row in biases for i, _ in row], np.int64), device),
        _floats([bias for row in biases for _, bias in row], device),
    )


def _seen(draw: Draw) -> Ints:
    if draw.penalties is None:
        return np.zeros(0, np.int64)
    found: Ints = np.flatnonzero(draw.penalties.seen)
    return found


def _starts(counts: Iterable[int], device: torch.device) -> Tensor:
    return _ints(np.cumsum([0, *counts]), device)


def _ints(values: npt.NDArray[np.int64], device: torch.device) -> Tensor:
    return torch.from_numpy(values.astype(np.int32)).to(device, non_blocking=True)


def _floats(values: Sequence[float], device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=torch.float32).to(device, non_blocking=True)


def _wide(values: Sequence[float], device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).to(device, non_blocking=True)
