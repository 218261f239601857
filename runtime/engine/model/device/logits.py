"""Logits that stay on their device: tokens are drawn there, and only what is asked for is copied to
the host. The kernels are Triton's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sgc.kernels.triton import sampling
from sgc.runtime.engine.model.device.graphs import pinned
from sgc.runtime.engine.model.device.sent_draws import send
from sgc.runtime.engine.requests.draws import Draw
from sgc.runtime.engine.requests.finite import NOT_FINITE, NotFinite

_ROWS_AT_ONCE = 64  # copied to the host


class DrawnTokens:
    """Tokens on a device, [n], on their way to the host: other work of the device, sent later, does
    not delay them."""

    def __init__(self, tokens: Tensor) -> None:
        self.tokens = tokens
        self._host = tokens
        self._is_there: Any = None
        if tokens.device.type == "cuda":
            self._host = torch.empty(tokens.shape, dtype=tokens.dtype, pin_memory=True)
            self._host.copy_(tokens, non_blocking=True)
            self._is_there = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._is_there.record()

    def wait(self) -> list[int]:
        if self._is_there is not None:
            self._is_there.synchronize()
        tokens: list[int] = self._host.tolist()
        return tokens


class DeviceLogits:
    """A `Logits`. values: [n_logits, vocab], valid until the next step."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    def rows(self, at: Sequence[int]) -> Iterator[npt.NDArray[np.float32]]:
        for start in range(0, len(at), _ROWS_AT_ONCE):
            yield from self._at(at[start : start + _ROWS_AT_ONCE]).float().cpu().numpy()

    def draw(self, at: Sequence[int], draws: Sequence[Draw]) -> list[int]:
        tokens: list[int] = self._drawn(at, draws).tolist()
        if min(tokens, default=0) < 0:
            raise NotFinite(NOT_FINITE)
        return tokens

    def begin_draw(self, at: Sequence[int], draws: Sequence[Draw]) -> DrawnTokens:
        with torch.inference_mode():
            return DrawnTokens(self._drawn(at, draws))

    def _drawn(self, at: Sequence[int], draws: Sequence[Draw]) -> Tensor:
        rows = self._at(at)
        sent = send(draws, rows.shape[1], rows.device)
        if sent.adjustments is not None:  # a copy, as log-probabilities are of the model's own
            rows = rows.to(torch.float32, copy=True)
        drawn: Tensor = sampling.sample(rows, sent.rows, sent.allowed, sent.adjustments)
        return drawn

    def log_probabilities(self, at: Sequence[int], tokens: Sequence[int]) -> list[float]:
        pairs = torch.tensor([at, tokens], dtype=torch.int64).to(self.values.device)
        found: list[float] = sampling.log_probabilities(self.values, pairs[0], pairs[1]).tolist()
        return found

    def _at(self, at: Sequence[int]) -> Tensor:
        """Not a copy if they follow one another."""
        if list(at) == list(range(at[0], at[0] + len(at))):
            return self.values[at[0] : at[-1] + 1]
        device = self.values.device
        return self.values[pinned(torch.tensor(at), device).to(device, non_blocking=True)]
