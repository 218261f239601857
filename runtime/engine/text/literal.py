"""Finds special tokens in a text, except those that touch a literal span.

`tokenizer.py` uses it for runs with text of arguments or generations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A special token and how the tokenizer looks for it."""

    id: int
    content: str
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A special token at text[start:end], including white space that it strips."""

    start: int
    end: int
    id: int


class SpecialFinder:
    """Finds special tokens in a text: leftmost first, the longest at each position."""

    def __init__(self, tokens: Iterable[SpecialToken]) -> None:
        self._by_content = {token.content: token for token in tokens if token.content}
        longest_first = sorted(self._by_content, key=len, reverse=True)
        pattern = "|".join(re.escape(content) for content in longest_first)
        self._pattern = re.compile(pattern) if pattern else None

    def touches(self, text: str, literal: Spans) -> bool:
        """Whether some special token's text overlaps a literal span."""
        return any(_overlaps(m.start(), m.end(), literal) for m in self._matches(text))

    def outside(self, text: str, literal: Spans) -> Iterator[Occurrence]:
        """The occurrences that overlap no literal span, in order."""
        done = 0
        for match in self._matches(text):
            start, end = match.span()
            token = self._by_content[match.group()]
            if start < done or _overlaps(start, end, literal):
                continue
            if token.single_word and not _is_single_word(text, start, end):
                continue
            while token.lstrip and start > done and text[start - 1].isspace():
                start -= 1
            while token.rstrip and end < len(text) and text[end].isspace():
                end += 1
            yield Occurrence(start, end, token.id)
            done = end

    def _matches(self, text: str) -> Iterator[re.Match[str]]:
        """Matches at every position, overlapping ones too: an earlier one may be literal."""
        at = 0
        while self._pattern is not None and (match := self._pattern.search(text, at)):
            yield match
            at = match.start() + 1


def _overlaps(start: int, end: int, literal: Spans) -> bool:
    return any(max(start, a) < min(end, b) for a, b in literal)


def _is_single_word(text: str, start: int, end: int) -> bool:
    before = text[start - 1 : start]
    after = text[end : end + 1]
    return not any(c.isalnum() or c == "_" for c in before + after)
