"""Checks that a token can be drawn from logits.

-inf is allowed: such a token is never drawn. NaN, +inf and a row of only -inf are errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class NotFinite(FloatingPointError):
    """Logits that no token can be drawn from."""


NOT_FINITE = "the model gave logits that are not finite numbers"


def check_finite(largest: np.floating[Any] | npt.NDArray[np.floating[Any]]) -> None:
    """Raises NotFinite. largest: the largest logit of each row; a NaN anywhere in a row is its
    largest."""
    if not np.isfinite(largest).all():
        raise NotFinite(NOT_FINITE)
