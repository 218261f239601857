"""Keeps clients' texts plain while a chat template renders them.

In a rendered conversation, special tokens are special only where the template itself wrote them. So
each special token in a client's text is replaced by a mark before rendering, and put back
afterwards, as a literal span. The template sees the rest of the text as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_OPEN, _CLOSE = "\U000f0f00", "\U000f0f01"  # characters of private use


class Masks:
    """The marks of one conversation."""

    def __init__(self, specials: Sequence[str]) -> None:
        """specials: the texts of the tokenizer's special tokens."""
        longest = sorted((text for text in specials if text), key=len, reverse=True)
        self._pattern = re.compile("|".join([*map(re.escape, longest), _OPEN, _CLOSE]))
        self._parts = {text[:n] for text in longest for n in range(1, len(text))}
        self._n_most = max(map(len, longest), default=0)
        self._hidden: list[str] = []

    def hide(self, value: Any) -> Any:
        """A JSON value with every special token in its texts and names replaced."""
        if isinstance(value, str):
            return self._hidden_end(self._pattern.sub(self._mark, value))
        if isinstance(value, list):
            return [self.hide(each) for each in value]
        if isinstance(value, dict):
            return {self.hide(name): self.hide(each) for name, each in value.items()}
        return value

    def show(self, rendered: str) -> tuple[str, list[tuple[int, int]]]:
        """The text with all marks replaced, and the spans in which it is literal."""
        parts: list[str] = []
        literal: list[tuple[int, int]] = []
        n_chars = at = 0
        for found in re.finditer(f"{_OPEN}([0-9]{{1,9}}){_CLOSE}", rendered):
            if int(found[1]) >= len(self._hidden):
                continue  # the template wrote this special token
            hidden = self._hidden[int(found[1])]
            parts += (rendered[at : found.start()], hidden)
            start = n_chars + found.start() - at
            n_chars = start + len(hidden)
            literal.append((start, n_chars))
            at = found.end()
        return "".join([*parts, rendered[at:]]), literal

    def _hidden_end(self, text: str) -> str:
        """The text, with a mark for the beginning of a special token at its end, which another text
        could complete."""
        for n in range(min(self._n_most, len(text)), 0, -1):
            if text[-n:] in self._parts:
                return text[:-n] + self._mark_of(text[-n:])
        return text

    def _mark(self, found: re.Match[str]) -> str:
        return self._mark_of(found[0])

    def _mark_of(self, hidden: str) -> str:
        self._hidden.append(hidden)
        return f"{_OPEN}{len(self._hidden) - 1}{_CLOSE}"
