"""The texts of bound arguments, which are from outside although their values are fixed.

Special tokens in them must stay plain text. Which tokens are special is known only with a model, so
every such text that could hold a special token is separated from the program's own texts when it is
appended, as the interpreter does with texts that hold one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sgc.core.texts import occurrences

# Characters in models' special tokens: "<|end|>", "[INST]", "</s>", "{{".
_MAY_BE_SPECIAL = re.compile(r"[<>\[\]{}|]")


class OutsideTexts:
    """The texts inside bound arguments, and the program's own texts, by id."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._own: Mapping[int, str] = {}

    def note_own(self, own: Mapping[int, str]) -> None:
        """Notes the program's own texts, by id."""
        self._own = own

    def add(self, values: Any) -> None:
        """Adds the texts of more values from outside."""
        self._collect(values)

    def _collect(self, value: Any) -> None:
        if isinstance(value, str):
            if _MAY_BE_SPECIAL.search(value):
                self._texts.add(str.__str__(value))
        elif isinstance(value, Mapping):
            for key, item in value.items():
                self._collect(key)
                self._collect(item)
        elif isinstance(value, (list, tuple, set, frozenset)):
            for item in value:
                self._collect(item)

    def split(self, text: str) -> list[tuple[bool, str]]:
        """A text in parts, each with whether it is the program's own, not from outside."""
        is_own = self._own.get(id(text)) is text and text not in self._texts
        if is_own or not self._texts or not text:
            return [(True, text)] if text else []
        parts: list[tuple[bool, str]] = []
        at = 0
        for start, end in sorted(occurrences(text, list(self._texts))):
            if end <= at:
                continue
            start = max(start, at)
            parts += [(True, text[at:start]), (False, text[start:end])]
            at = end
        parts.append((True, text[at:]))
        return [part for part in parts if part[1]]
