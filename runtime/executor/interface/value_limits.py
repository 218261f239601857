"""Limits of a program's values, so that a run cannot fill the memory."""

from __future__ import annotations

import math

from sgc.errors import ProgramError

MAX_TEXT = 10_000_000  # characters
# Python's own limit for converting an int to text, so that every number can be shown.
MAX_DIGITS = 4300
MAX_BITS = math.ceil(MAX_DIGITS * math.log2(10))
MAX_ITEMS = 1_000_000  # of a list


class LimitExceeded(ProgramError):
    """A value of a program would be larger than the limit."""


def check_length(n_chars: int) -> None:
    """Raises LimitExceeded for a text that would be too long."""
    if n_chars > MAX_TEXT:
        raise LimitExceeded(
            f"a text of {n_chars} characters would be made; {MAX_TEXT} are allowed",
            hint="make it shorter before it is repeated or padded",
        )


def check_items(n_items: int) -> None:
    """Raises LimitExceeded for a list that would be too long."""
    if n_items > MAX_ITEMS:
        raise LimitExceeded(
            f"a list of {n_items} items would be made; {MAX_ITEMS} are allowed",
            hint="keep fewer of them",
        )


def check_bits(n_bits: float) -> None:
    """Raises LimitExceeded for a whole number that would be too large."""
    if n_bits > MAX_BITS:
        raise LimitExceeded(
            f"a number of more than {MAX_DIGITS} digits would be made",
            hint="use floats, or smaller numbers",
        )
