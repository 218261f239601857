"""Adapters on a model's own modules: the additions to a linear layer's output are computed at once
for all rows of an adapter. For models that our own kernels do not compute (`ways.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from sgc.runtime.engine.ints import Ints
from sgc.runtime.engine.model.decoders.deltas import Adapter, Delta

_Runs = list[tuple[int, int, int]]
"""(adapter, first row, row after the last) for rows that have an adapter."""


class AdaptedModules:
    """The hooks of a model's modules; `begin` sets the next batch."""

    def __init__(self, model: Any, adapters: Sequence[Adapter]) -> None:
        self._runs: dict[int, _Runs] = {}
        for name in sorted({name for adapter in adapters for name in adapter}):
            deltas = [adapter.get(name) for adapter in adapters]
            module: nn.Module = model.get_submodule(name)
            module.register_forward_hook(self._hook(deltas))

    def begin(self, adapters: Ints | None, wanted: Ints) -> None:
        """adapters: [n_tokens], the adapter of each token; None if no token has one. wanted: the
        tokens that the head gets; if these are all tokens, they are the same rows."""
        self._runs = {}
        if adapters is not None:
            self._runs[len(wanted)] = _runs(adapters[wanted])
            self._runs[len(adapters)] = _runs(adapters)

    def _hook(self, deltas: Sequence[Delta | None]) -> Any:
        def add(module: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> None:
            if not self._runs:
                return
            x, y = given[0].reshape(-1, given[0].shape[-1]), out.view(-1, out.shape[-1])
            for adapter, start, end in self._runs[len(x)]:
                delta = deltas[adapter - 1]
                if delta is not None:
                    y[start:end] += x[start:end].float() @ delta.down.T @ delta.up.T

        return add


def _runs(adapters: Ints) -> _Runs:
    starts = [0, *(np.flatnonzero(np.diff(adapters)) + 1).tolist(), len(adapters)]
    runs = itertools.pairwise(starts)
    return [(int(adapters[a]), a, b) for a, b in runs if a < b and adapters[a]]
