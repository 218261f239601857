"""Cuts a stretch of text into sentences, values being single characters whose places are known."""

from __future__ import annotations

import re
from itertools import pairwise

from sgc.passes.changing.movement.vocabulary import OPENERS

_END = re.compile(r"[.!?。！？][\"'”’)\]*_]*(?=\s+\S)")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|cf|mr|mrs|ms|dr|prof|fig|approx|incl|max|min|resp|u\.s|u\.k|jr|sr)"
    r"|^\s*\d{1,2}|\n\s*\d{1,2})\.$",
    re.I,
)
_ENCLOSED = re.compile(r'"[^"\n]{0,400}"|“[^”\n]{0,400}”|\([^()\n]{0,400}\)|`[^`\n]{0,400}`')
# After a value that ends a line of its own, e.g. `Article: {x} Summarize the article.`
_AFTER_VALUE = re.compile(r"[\"'”’)\]]*\s+(?=([A-Z][a-z'’]+)\s)")
_FOLLOWER = re.compile(r"\s+(\S)")


def split_sentences(
    text: str, start: int, end: int, slots: frozenset[int]
) -> list[tuple[int, int]]:
    """The sentences of text[start:end], without the white space between them."""
    enclosed = [found.span() for found in _ENCLOSED.finditer(text, start, end)]
    cuts: list[int] = []
    for found in _END.finditer(text, start, end):
        if any(low <= found.start() < high - 1 for low, high in enclosed):
            continue
        if _ABBREVIATION.search(text[max(start, found.start() - 12) : found.start() + 1]):
            continue
        follower = _FOLLOWER.match(text, found.end(), end)
        # A lower-case letter or a parenthesis goes on with a sentence.
        if follower and not follower.group(1).islower() and follower.group(1) != "(":
            cuts.append(found.end())
    cuts += _cuts_after_values(text, start, end, slots)
    edges = [start, *sorted(set(cuts)), end]
    spans = [_stripped(text, low, high) for low, high in pairwise(edges)]
    return [(low, high) for low, high in spans if low < high]


def _cuts_after_values(text: str, start: int, end: int, slots: frozenset[int]) -> list[int]:
    """Where a new sentence begins behind a value that stands alone behind its label."""
    found = []
    for slot in sorted(i for i in slots if start <= i < end):
        before = text[start:slot].rstrip("\"'“‘([ ")
        if before and not before.endswith((":", "=", "-", "+")):
            continue
        follower = _AFTER_VALUE.match(text, slot + 1, end)
        if follower and follower.group(1).lower() in OPENERS:
            found.append(follower.end())
    return found


def _stripped(text: str, low: int, high: int) -> tuple[int, int]:
    body = text[low:high].strip()
    start = low + len(text[low:high]) - len(text[low:high].lstrip())
    return start, start + len(body)
