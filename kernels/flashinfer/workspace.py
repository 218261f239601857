"""Memory for the partial outputs of rows whose keys are split, as FlashInfer's plans need it."""

from __future__ import annotations

import torch
from torch import Tensor

from sgc.kernels.flashinfer.library import Kind

MAX_BYTES = 512 << 20  # graphs' is made when pages have taken the rest
_N_PROCESSORS = 132  # where there is no GPU
_ALIGNMENT = 256


class Workspace:
    """Plans share one workspace, since no call uses what an earlier one has left in it."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._n_processors = device, _N_PROCESSORS
        if device.type == "cuda":
            properties = torch.cuda.get_device_properties(device)
            self._n_processors = properties.multi_processor_count
        self._memory = torch.empty(0, dtype=torch.uint8, device=device)

    def fits(self, kind: Kind, n_rows: int = 0) -> bool:
        return workspace_bytes(kind, self._n_processors, n_rows) <= MAX_BYTES

    def of(self, kind: Kind, n_rows: int = 0) -> Tensor:
        """The workspace for a plan; n_rows: as in `workspace_bytes`. Earlier plans keep theirs."""
        n = workspace_bytes(kind, self._n_processors, n_rows)
        if len(self._memory) < n:
            self._memory = torch.empty(n, dtype=torch.uint8, device=self._device)
        return self._memory


def workspace_bytes(kind: Kind, n_processors: int, n_rows: int = 0) -> int:
    """The most that a plan needs for partial outputs, as FlashInfer's scheduler reserves them
    (`PrefillPlan` in scheduler.cuh), which refuses to plan with less. n_rows: the rows of a graph's
    plan, of one token each, for all of which it reserves; 0 without a graph."""
    group, is_wide = kind.n_heads // kind.n_kv_heads, kind.head_dim >= 256
    tile, n_tiles = 64 if is_wide else 128, 2 * n_processors // kind.n_kv_heads
    if n_rows:
        tile = 16 if group <= 16 else 64 if group <= 64 else tile
        n_tiles = max(n_tiles, -(-n_rows * group // tile) + n_rows - 1)
    return 4 * kind.n_heads * n_tiles * tile * (kind.head_dim + 1) + _ALIGNMENT
