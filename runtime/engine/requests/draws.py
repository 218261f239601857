"""How the next token of one row is drawn: what a sampler is told, wherever it runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sgc.runtime.engine.requests.penalties import Penalties
from sgc.runtime.engine.requests.request import SamplingParams

_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Draw:
    """How to sample one row. n_generated: tokens before this one. banned: ids that must not be
    drawn. allowed: [vocab], the tokens that a constraint allows, at least one."""

    params: SamplingParams
    n_generated: int = 0
    penalties: Penalties | None = None
    banned: tuple[int, ...] = ()
    allowed: npt.NDArray[np.bool_] | None = None

    @property
    def is_adjusted(self) -> bool:
        has_rules = bool(self.banned) or self.allowed is not None
        return has_rules or self.penalties is not None or bool(self.params.logit_bias)

    @property
    def point(self) -> float:
        """The uniform number that decides it."""
        return uniform(self.params.seed, self.n_generated)


def uniform(seed: int, n_generated: int) -> float:
    """A number in [0, 1) that depends only on seed and n_generated (splitmix64)."""
    z = (_mix(seed & _MASK) + (n_generated + 1) * 0x9E3779B97F4A7C15) & _MASK
    return (_mix(z) >> 11) * 2.0**-53


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
