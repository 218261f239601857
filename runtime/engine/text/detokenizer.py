"""Decodes generated token ids incrementally, and finds stop strings.

Generated text continues a prompt: a leading space stays, special tokens give no text, invalid UTF-8
gives U+FFFD. Used by the step process (to stop) and by the server process (to stream and to cut).
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from sgc.runtime.engine.text.token_bytes import TokenBytes, token_bytes
from sgc.runtime.engine.text.tokenizer import Tokenizer

REPLACEMENT = "\ufffd"
MAX_WINDOW = 32


class IncrementalDetokenizer:
    """Returns the text of a growing list of ids, piece by piece; pieces are never retracted."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        table = _table_of(tokenizer)
        self._state = _WindowState(tokenizer) if table is None else _TableState(table)

    def feed(self, ids: Sequence[int]) -> str:
        """The new text that further ids cannot change."""
        return self._state.feed(ids)

    def flush(self) -> str:
        """The text still held back, when no more ids follow."""
        return self._state.flush()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is held back: the last id ended a character."""
        return self._state.is_whole


class StopChecker:
    """Finds the first stop string in the text of a growing list of ids.

    The first is the one that ends first; of several that end at the same character, the longest. So
    the result does not depend on how the text is split into tokens.
    """

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str]) -> None:
        self._stop = tuple(filter(None, stop))
        self._keep = max(map(len, self._stop), default=1) - 1
        self._detokenizer = IncrementalDetokenizer(tokenizer)
        self._recent = ""

    def feed(self, ids: Sequence[int]) -> str | None:
        """The stop string that the text of these ids completes, if any."""
        found = self.feed_text(self._detokenizer.feed(ids)) if self._stop else None
        return None if found is None else found[0]

    def feed_text(self, new: str) -> tuple[str, int] | None:
        """The stop string that these characters complete, if any, and where it ends in them."""
        if not new or not self._stop:
            return None
        n_seen, window = len(self._recent), self._recent + new
        found = first_stop(window, self._stop, n_seen)
        self._recent = window[-self._keep :] if self._keep else ""
        return None if found is None else (found[0], found[1] - n_seen)


def first_stop(text: str, stop: Sequence[str], n_seen: int) -> tuple[str, int] | None:
    """The stop string that ends first beyond text[:n_seen], and where it ends; of several with the
    same end, the longest."""
    ends = []
    for string in stop:
        start = text.find(string, max(0, n_seen - len(string) + 1))
        if start >= 0:
            ends.append((start + len(string), -len(string), string))
    if not ends:
        return None
    end, _, string = min(ends)
    return string, end


def split_kept(
    tokenizer: Tokenizer, ids: Sequence[int], n_text_chars: int
) -> tuple[tuple[int, ...], str]:
    """Cuts generated ids at a text position: the whole tokens before it, and the text left over.

    The kept ids end a character; their text and the rest are the text's first `n_text_chars`
    characters.
    """
    detokenizer = IncrementalDetokenizer(tokenizer)
    text, n_kept, n_kept_chars = "", 0, 0
    for i, token_id in enumerate(ids, start=1):
        text += detokenizer.feed([token_id])
        if len(text) > n_text_chars:
            break
        if detokenizer.is_whole:
            n_kept, n_kept_chars = i, len(text)
    else:
        text += detokenizer.flush()
    return tuple(ids[:n_kept]), text[n_kept_chars:n_text_chars]


_tables: WeakKeyDictionary[Tokenizer, TokenBytes | None] = WeakKeyDictionary()


def _table_of(tokenizer: Tokenizer) -> TokenBytes | None:
    try:
        return _tables[tokenizer]
    except KeyError:
        return _tables.setdefault(tokenizer, token_bytes(tokenizer))


class _TableState:
    """Does what `codecs.getincrementaldecoder("utf-8")` does, without its decoder object."""

    __slots__ = ("_held", "_table")

    def __init__(self, table: TokenBytes) -> None:
        self._table = table
        self._held = b""  # the beginning of an unfinished character

    def feed(self, ids: Sequence[int]) -> str:
        table = self._table
        data = b"".join([self._held, *[table[i] for i in ids]])
        text, n_read = codecs.utf_8_decode(data, "replace", False)
        self._held = data[n_read:]
        return text

    def flush(self) -> str:
        text, _ = codecs.utf_8_decode(self._held, "replace", True)
        self._held = b""
        return text

    @property
    def is_whole(self) -> bool:
        return not self._held


class _WindowState:
    """For decoders that depend on neighbours: decodes a window with and without the new tokens.

    A window that ends in U+FFFD may end in an unfinished character, and waits for up to MAX_WINDOW
    tokens.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._backend = tokenizer.backend
        self._ids: list[int] = []
        self._n_read = 0

    def feed(self, ids: Sequence[int]) -> str:
        self._ids.extend(ids)
        text = self._new_text()
        if text.endswith(REPLACEMENT) and len(self._ids) - self._n_read < MAX_WINDOW:
            return ""
        self._advance()
        return text

    def flush(self) -> str:
        text = self._new_text()
        self._advance()
        return text

    @property
    def is_whole(self) -> bool:
        return self._n_read == len(self._ids)

    def _new_text(self) -> str:
        before = self._backend.decode(self._ids[: self._n_read], skip_special_tokens=True)
        whole: str = self._backend.decode(self._ids, skip_special_tokens=True)
        return whole[len(before) :]

    def _advance(self) -> None:
        self._ids = self._ids[-MAX_WINDOW:]
        self._n_read = len(self._ids)
