"""What every proposal must keep, whoever made it: it only puts pieces in another order.

Legal is an order of the pieces with each there once, arguments in their order, a cue last, and
more constant text in front of the first argument. That labels and delimiters stay with their
argument is in the pieces; that nothing crosses a generation, a turn or a state that the program
reads is in the prompt, which ends there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sgc.passes.changing.movement.pieces import Kind


def violation(kinds: Sequence[Kind], order: Sequence[int]) -> str:
    """The first rule that an order of the pieces breaks, in words; "" if it is legal."""
    counts = Counter(order)
    for number in sorted({*counts, *range(len(kinds))}):
        if not 0 <= number < len(kinds):
            return f"there is no piece {number}"
        if counts[number] != 1:
            return f"piece {number} is there {counts[number]} times"
    arguments = [number for number in order if kinds[number] is Kind.ARGUMENT]
    if arguments != sorted(arguments):
        return "arguments change places"
    if Kind.CUE in kinds and order[-1] != len(kinds) - 1:
        return f"piece {len(kinds) - 1} begins the reply and must stay last"
    if list(order) != sorted(order) and not set(led(kinds, order)) > set(led(kinds, sorted(order))):
        return "no text comes in front of the first argument"
    return ""


def led(kinds: Sequence[Kind], order: Sequence[int]) -> list[int]:
    """The pieces in front of the first argument."""
    first = next(i for i, number in enumerate(order) if kinds[number] is Kind.ARGUMENT)
    return list(order[:first])
