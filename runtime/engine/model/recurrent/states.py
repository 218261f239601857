"""The states of recurrent layers: slots in memory, and which rows of a batch run together.

A layer runs rows of the same length at once: those that decode, above all. Rows that read what
others of the batch write run after them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from sgc.runtime.engine.cache.states import EMPTY, FIRST
from sgc.runtime.engine.model.forward import FlatBatch

Part = tuple[int, str, int]
"""A layer, "conv" or "recurrent", and the number of the state."""


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of the same length. tokens: [n_rows, n] indices into the batch. is_new: they begin
    sequences."""

    tokens: Tensor
    reads: Tensor
    writes: Tensor
    is_new: bool

    @property
    def in_place(self) -> int | None:
        """The slot of the only row, if it writes where it reads."""
        slot = int(self.reads[0])
        return slot if len(self.reads) == 1 and slot == int(self.writes[0]) else None


@dataclass(slots=True)
class StatePool:
    """n_slots: beside those that `cache/states.py` keeps for itself. parts: [all slots, …] each,
    made when their layer first runs."""

    n_slots: int
    parts: dict[Part, Tensor] = field(default_factory=dict)

    @property
    def layers(self) -> set[int]:
        return {layer for layer, _, _ in self.parts}

    @property
    def slot_bytes(self) -> int:
        return sum(part[0].numel() * part.element_size() for part in self.parts.values())

    def resize(self, n_slots: int) -> None:
        """Forgets all states."""
        self.n_slots = n_slots
        self.parts = {key: self._made(part) for key, part in self.parts.items()}

    def of(self, layer: int) -> list[tuple[Part, Tensor]]:
        return [(key, part) for key, part in self.parts.items() if key[0] == layer]

    def read(self, key: Part, group: Group) -> Tensor:
        """[n_rows, …]: a copy, or the slot itself if it is written in place."""
        slot = group.in_place
        part = self.parts[key]
        return part[slot : slot + 1] if slot is not None else part[group.reads]

    def write(self, key: Part, group: Group, state: Tensor) -> None:
        part = self.parts.get(key)
        if part is None:
            part = self.parts[key] = self._made(state)
        if group.is_new or group.in_place is None:
            part[group.writes] = state

    def _made(self, like: Tensor) -> Tensor:
        return like.new_empty((FIRST + self.n_slots, *like.shape[1:]))


def groups_of(batch: FlatBatch) -> list[Group]:
    """The rows of a batch, as they may run one group after the other."""
    assert batch.states is not None
    lengths = np.diff(batch.row_starts).tolist()
    reads, writes = batch.states.tolist()
    after: dict[int, int] = {}  # in which round a slot is written
    found: dict[tuple[int, int, bool], list[int]] = {}
    for row, n in enumerate(lengths):
        if n:
            turn = after.get(reads[row], -1) + 1
            after[writes[row]] = turn
            found.setdefault((turn, n, reads[row] == EMPTY), []).append(row)
    starts = batch.row_starts
    return [
        Group(
            torch.from_numpy(np.asarray(starts[rows])[:, None] + np.arange(n)),
            torch.tensor([reads[row] for row in rows]),
            torch.tensor([writes[row] for row in rows]),
            is_new,
        )
        for (_, n, is_new), rows in sorted(found.items())
    ]
