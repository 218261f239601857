"""Whether logits are numbers that a token can be drawn from.

-inf is ordinary: such a token is never drawn. A NaN, +inf, or a row of nothing but -inf is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class NotFinite(FloatingPointError):
    """Logits that nothing can be drawn from."""


def check_finite(largest: np.floating[Any] | npt.NDArray[np.floating[Any]]) -> None:
    """Takes the largest logit of each row: a NaN anywhere in a row is its largest. Raises
    NotFinite."""
    if not np.isfinite(largest).all():
        raise NotFinite("the model gave logits that are not finite numbers")
