"""Token healing: a prompt's last tokens are taken back where a token could span its end.

In a prompt that ends with `http:`, the `:` is a token, though the model has learnt `://` as one
token. So the last tokens are removed from the prompt where a longer token begins with their text,
and the generation must then begin with this text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from sgc.runtime.engine.text.token_bytes import TokenBytes, token_bytes
from sgc.runtime.engine.text.tokenizer import Tokenizer

MAX_TAKEN_BACK = 8


class Healer:
    """Finds which tokens of a prompt to take back; it knows the bytes of each token."""

    def __init__(self, tokenizer: Tokenizer, table: TokenBytes) -> None:
        self._specials = tokenizer.special_ids
        self._table = table
        self._sorted = sorted({table[i] for i in range(tokenizer.vocab_size)})

    def taken_back(self, ids: Sequence[int]) -> list[tuple[int, str]]:
        """How many of a text's last tokens may be taken back, the most first, and their text: the
        bytes of some other token begin with this text and are longer. It holds whole characters and
        no special token."""
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
    """The tokenizer's healer; None if the tokenizer does not tell its tokens' bytes."""
    if tokenizer not in _healers:
        table = token_bytes(tokenizer)
        _healers[tokenizer] = None if table is None else Healer(tokenizer, table)
    return _healers[tokenizer]
