"""What every proposal must keep, whoever made it; knows nothing of how it was made.

A proposal is an order of all parts of a passage: pieces by number, barriers among them.
Legal is: the same pieces, each once; every barrier where it was, with the same pieces on either
side; arguments in their order; a cue last before its barrier. Labels and delimiters are part of
their pieces, so that they cannot part. White space is `rebuild.py`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sgc.passes.changing.movement.pieces import Kind


@dataclass(frozen=True, slots=True)
class Part:
    """What is numbered: a piece, or a barrier (kind None). text: as it is shown."""

    kind: Kind | None
    text: str


def breach(parts: Sequence[Part], order: Sequence[int]) -> str:
    """The first rule that an order of the parts breaks, in words; "" if it is legal."""
    return (
        _of_pieces(parts, order)
        or _of_barriers(parts, order)
        or _of_arguments(parts, order)
        or _of_cues(parts, order)
    )


def _of_pieces(parts: Sequence[Part], order: Sequence[int]) -> str:
    counts = Counter(order)
    for number in sorted(counts):
        if not 0 <= number < len(parts):
            return f"there is no piece {number}"
        if counts[number] > 1:
            return f"piece {number} is there {counts[number]} times"
    missing = sorted(set(range(len(parts))) - set(order))
    return f"piece {missing[0]} is missing: {parts[missing[0]].text!r}" if missing else ""


def _of_barriers(parts: Sequence[Part], order: Sequence[int]) -> str:
    """Each part must lie between the same two barriers as before."""
    before, after = _sides(parts, range(len(parts))), _sides(parts, order)
    for number, part in enumerate(parts):
        crossed = set(before[number]) ^ set(after[number])
        if crossed:
            what = f"piece {number}" if part.kind is not None else part.text
            return f"{what} crosses a barrier: {parts[min(crossed)].text}"
        if before[number] != after[number]:
            return "barriers change places"
    return ""


def _sides(parts: Sequence[Part], order: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """The barriers in front of each part, in order."""
    passed: list[int] = []
    found: dict[int, tuple[int, ...]] = {}
    for number in order:
        found[number] = tuple(passed)
        if parts[number].kind is None:
            passed.append(number)
    return found


def _of_arguments(parts: Sequence[Part], order: Sequence[int]) -> str:
    arguments = [number for number in order if parts[number].kind is Kind.ARGUMENT]
    for one, two in pairwise(arguments):
        if one > two:
            return f"arguments change places: pieces {two} and {one}"
    return ""


def _of_cues(parts: Sequence[Part], order: Sequence[int]) -> str:
    for number, after in pairwise(order):
        if parts[number].kind is Kind.CUE and parts[after].kind is not None:
            return f"piece {number} begins the reply and must stay last: {parts[number].text!r}"
    return ""
