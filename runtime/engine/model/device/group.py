"""The processes that compute one model together, each a share of every layer's heads and of its
MLP (tensor parallelism; Shoeybi et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

# A process that ends is noticed at once by its peers' pipes; this bounds what else may go wrong.
TIMEOUT = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Group:
    """rank: of this process, from 0; n: how many there are."""

    rank: int = 0
    n: int = 1

    @property
    def is_alone(self) -> bool:
        return self.n == 1

    def device(self, device: torch.device) -> torch.device:
        """This process's device: the GPU as many after the first as its rank."""
        if device.type != "cuda":
            return device
        return torch.device("cuda", (device.index or 0) + self.rank)

    def join(self, device: torch.device, folder: Path) -> None:
        """Waits until all have joined. folder: one that only they use, and that stays: they find
        each other there at their first sum, too."""
        is_gpu = device.type == "cuda"
        dist.init_process_group(
            "nccl" if is_gpu else "gloo",
            init_method=f"file://{folder / 'group'}",
            rank=self.rank,
            world_size=self.n,
            timeout=TIMEOUT,
            device_id=device if is_gpu else None,
        )

    def summed(self, x: Tensor) -> Tensor:
        """The sum of all processes' tensors, in each of them; x changes."""
        if not self.is_alone:
            dist.all_reduce(x)
        return x

    def least(self, value: int) -> int:
        """The smallest of all processes' numbers."""
        if self.is_alone:
            return value
        backend = dist.get_backend()
        found = torch.tensor(value, device="cuda" if backend == "nccl" else "cpu")
        dist.all_reduce(found, dist.ReduceOp.MIN)
        return int(found)


ALONE = Group()
