"""What adapters (LoRA) add to a decoder's products: y += (x @ down.T) @ up.T.

Our own kernels compute it in the product itself: after an input's row they append the product of
the row with its adapter's `down`, and zeros in the columns of other adapters; the weight is
extended by all `up`s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

_ALIGNED = 32  # columns: keeps rows at addresses that kernels read quickly


@dataclass(frozen=True, slots=True)
class Delta:
    """An adapter's change of a module. down: [rank, n_in]; up: [n_out, rank], scaled. float32."""

    down: Tensor
    up: Tensor


Adapter = Mapping[str, Delta]
"""An adapter's deltas, by the names of the model's modules."""


@dataclass(frozen=True, slots=True)
class Longer:
    """Weights of one input, longer by `width` columns: [n_out, n_in + width]. downs: for each
    adapter, the matrix that makes its columns, [n, n_in], None if it changes none of these weights,
    and the first of these columns."""

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
        """The extended weights, which are modules' weights or rows of them; None if no adapter
        changes any."""
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
    """The rows of `up` for a weight; zeros if the weight lies in another module."""
    if home is None or home[0] != name:
        return delta.up.new_zeros(n_out, delta.up.shape[1])
    return delta.up[home[1] : home[1] + n_out]
