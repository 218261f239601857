"""Token healing: a prompt's last tokens are taken back where a token could span its end.

A prompt that ends with `http:` has tokenized the `:` already, though the model has learnt `://`
as one token. So the tokens of the prompt's last text that some token of the vocabulary extends
beyond are left out of it, and the generation has to begin with their text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from sgc.runtime.engine.text.token_bytes import TokenBytes, token_bytes
from sgc.runtime.engine.text.tokenizer import Tokenizer

MAX_TAKEN_BACK = 8


class Healer:
    """Knows what each token of a vocabulary says."""

    def __init__(self, tokenizer: Tokenizer, table: TokenBytes) -> None:
        self._specials = tokenizer.special_ids
        self._table = table
        self._sorted = sorted({table[i] for i in range(tokenizer.vocab_size)})

    def taken_back(self, ids: Sequence[int]) -> list[tuple[int, str]]:
        """How many of a text's last tokens may be taken back, the most first, and their text:
        those whose bytes some token begins with and goes on from. They begin and end with whole
        characters, and none is special."""
        found: list[tuple[int, str]] = []
        text = b""
        for n, token in enumerate(reversed(ids[-MAX_TAKEN_BACK:]), start=1):
            if token in self._specials:
                break
            text = self._table[token] + text
            if _is_whole(text) and self._is_extended(text):
                found.append((n, text.decode()))
        return found[::-1]

    def _is_extended(self, text: bytes) -> bool:
        at = bisect_right(self._sorted, text)
        return at < len(self._sorted) and self._sorted[at].startswith(text)


def _is_whole(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return bool(text)


_healers: WeakKeyDictionary[Tokenizer, Healer | None] = WeakKeyDictionary()


def healer_of(tokenizer: Tokenizer) -> Healer | None:
    """None for a tokenizer whose tokens have no bytes of their own."""
    if tokenizer not in _healers:
        table = token_bytes(tokenizer)
        _healers[tokenizer] = None if table is None else Healer(tokenizer, table)
    return _healers[tokenizer]
