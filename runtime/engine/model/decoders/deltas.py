"""What adapters (LoRA) add to a decoder's products: y += (x @ down.T) @ up.T.

Our own kernels compute it in the product itself: behind an input's row they put what the row's
adapter makes of it, and zeros in the columns of the others; the weight is longer by all `up`s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

_ALIGNED = 32  # columns: rows stay at places that kernels read quickly


@dataclass(frozen=True, slots=True)
class Delta:
    """Of one module, by one adapter. down: [rank, n_in]; up: [n_out, rank], scaled. float32."""

    down: Tensor
    up: Tensor


Adapter = Mapping[str, Delta]
"""An adapter's deltas, by the names of the model's modules."""


@dataclass(frozen=True, slots=True)
class Longer:
    """Weights of one input, longer by `width` columns: [n_out, n_in + width]. downs: of each
    adapter what its columns are made with, [n, n_in], None if it changes none of these weights, and
    where they begin."""

    weights: list[Tensor]
    downs: list[tuple[Tensor | None, int]]
    width: int


@dataclass(slots=True)
class Deltas:
    """The deltas of all adapters. weights: of the model's modules, by their names."""

    adapters: Sequence[Adapter]
    weights: Mapping[str, Tensor]
    unused: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.unused = {name for adapter in self.adapters for name in adapter}

    def longer(self, weights: Sequence[Tensor]) -> Longer | None:
        """None: no adapter changes any of these weights, which are the modules' or rows of
        them."""
        homes = [self._home(weight) for weight in weights]
        names = list(dict.fromkeys(home[0] for home in homes if home is not None))
        if not names:
            return None
        self.unused -= set(names)
        downs: list[tuple[Tensor | None, int]] = []
        behind: list[list[Tensor]] = [[] for _ in weights]
        at = 0
        for adapter in self.adapters:
            found = [name for name in names if name in adapter]
            down = torch.cat([adapter[name].down for name in found]) if found else None
            downs.append((down, at))
            for weight, home, columns in zip(weights, homes, behind, strict=True):
                columns += [_up(adapter[name], name, home, len(weight)) for name in found]
            at += 0 if down is None else len(down)
        width = -(-at // _ALIGNED) * _ALIGNED
        made = [
            torch.cat([w, *(c.to(w.dtype) for c in columns), w.new_zeros(len(w), width - at)], 1)
            for w, columns in zip(weights, behind, strict=True)
        ]
        return Longer(made, downs, width)

    def _home(self, weight: Tensor) -> tuple[str, int] | None:
        """The module that a weight lies in, and its first row there."""
        for name, whole in self.weights.items():
            ahead = weight.data_ptr() - whole.data_ptr()
            if 0 <= ahead < whole.nbytes:
                return name, ahead // weight.element_size() // weight.stride(0)
        return None


def _up(delta: Delta, name: str, home: tuple[str, int] | None, n_out: int) -> Tensor:
    """What a weight gets in the columns of a module: nothing, if it lies in another."""
    if home is None or home[0] != name:
        return delta.up.new_zeros(n_out, delta.up.shape[1])
    return delta.up[home[1] : home[1] + n_out]
