"""The rules for every proposal, whoever made it: it may only reorder pieces.

An order is legal if it has each piece once, keeps the order of arguments, has a cue last, and puts
more constant text in front of the first argument. Labels and delimiters stay with their argument
because they are in one piece. Nothing crosses a generation, a turn or a state that the program
reads, because a prompt ends there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sgc.passes.changing.movement.pieces import Kind


def violation(kinds: Sequence[Kind], order: Sequence[int]) -> str:
    """The first rule that an order of the pieces breaks, as a sentence; "" if it is legal."""
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
