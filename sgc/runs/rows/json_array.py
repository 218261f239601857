"""Rows of a file that is one JSON array of objects, read piece by piece."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from sgc.errors import UsageError
from sgc.runs.rows.records import MAX_ROW_BYTES, Raw
from sgc.runtime.engine.text import strict_json

UNIT = "item"
_PIECE = 1 << 16
_SPACE = " \t\n\r"


def read(path: Path) -> Iterator[Raw]:
    """Raises UsageError where the text stops being an array, as the rest has no meaning then."""
    with _Text(path) as text:
        if text.next_char() != "[":
            raise UsageError(f"{path}: expected a JSON array of objects, found no [ at its start")
        text.at += 1
        number = 0
        while (char := text.next_char()) != "]":
            if number:
                if char != ",":
                    raise UsageError(f"{path}: item {number}: expected , or ] after it")
                text.at += 1
            number += 1
            yield Raw(number, text.item(number))
        text.at += 1
        if text.next_char():
            raise UsageError(f"{path}: expected nothing after the array's ]")


class _Text:
    """The text of a file around the reading position; at: that position in `_held`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("strict").decode
        self._held, self._is_over = "", False
        self.at = 0

    def __enter__(self) -> _Text:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def next_char(self) -> str:
        """The next character that is not a space, without consuming it; "" at the end."""
        while True:
            held, at = self._held, self.at
            while at < len(held) and held[at] in _SPACE:
                at += 1
            self.at = at
            if at < len(held):
                return held[at]
            if not self._more(_PIECE):
                return ""

    def item(self, number: int) -> object:
        self.next_char()
        n_bytes = _PIECE
        while True:
            problem, value, end = "", None, self.at
            try:
                value, end = strict_json.load_at(self._held, self.at)
            except strict_json.RepeatedNameError as error:
                raise self._error(number, str(error)) from error
            except (ValueError, RecursionError) as error:
                problem = str(error)
            # A number may continue beyond the text that is held.
            is_whole = not problem and end < len(self._held)
            is_too_long = len(self._held) - self.at > MAX_ROW_BYTES
            if is_whole or is_too_long or not self._more(n_bytes):
                break
            n_bytes = min(2 * n_bytes, MAX_ROW_BYTES)
        if problem:
            raise self._error(number, problem)
        # `_more` has dropped what is before the item.
        self.at = end if is_whole or is_too_long else len(self._held)
        return value

    def _error(self, number: int, problem: str) -> UsageError:
        return UsageError(f"{self._path}: item {number}: expected a JSON object: {problem}")

    def _more(self, n_bytes: int) -> bool:
        """Reads on; False at the end."""
        if self._is_over:
            return False
        data = self._file.read(n_bytes)
        self._is_over = not data
        try:
            new = self._decode(data, self._is_over)
        except UnicodeDecodeError as error:
            raise UsageError(f"{self._path}: expected UTF-8: {error.reason}") from error
        self._held, self.at = self._held[self.at :] + new, 0
        return not self._is_over or bool(new)
