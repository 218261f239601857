"""The interfaces of a request's rules for its text: where it ends, and which tokens may come next.
The engine's loop knows only these; `guides/` implements them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Stop:
    """What ended a text: a stop string, or a pattern's match, n_over characters before the end.

    n_chars: from the beginning of the stop string to the end of the text.
    """

    text: str = ""
    n_over: int | None = None
    n_chars: int = 0

    def __bool__(self) -> bool:
        return bool(self.text) or self.n_over is not None


NO_STOP = Stop()


class StopChecker(Protocol):
    def feed(self, ids: list[int], counts: bool) -> Stop:
        """Adds ids; returns the stop that ends the text within them, if any.

        counts: whether a stop may end the text yet (see min_tokens).
        """
        ...


class Guide(Protocol):
    """The state of a constraint in one generation (`guides.py`)."""

    def take(self, ids: Sequence[int]) -> None:
        """Advances by generated tokens."""
        ...

    def forced(self) -> list[int]:
        """The tokens that must come next, whatever the model's logits are."""
        ...

    def write_mask(self, row: npt.NDArray[np.int32]) -> None:
        """Writes a bit per token, set if it may come next, and one more for the end of text."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether no token can follow."""
        ...

    @property
    def may_end(self) -> bool:
        """Whether the text so far satisfies the constraint."""
        ...

    @property
    def is_free(self) -> bool:
        """Whether any text is allowed from here on."""
        ...

    def is_whole_without(self, n_chars: int) -> bool:
        """Whether the text satisfies the constraint without its last `n_chars` characters."""
        ...

    def check(self) -> None:
        """Raises ValueError if it failed."""
        ...


class Constraint(Protocol):
    def start(self, jumps: bool) -> Guide:
        """A guide for one generation. jumps: whether `forced` ever returns tokens."""
        ...
