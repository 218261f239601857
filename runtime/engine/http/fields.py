"""Reads the fields of a JSON object with their types; errors name the field.

A null field counts as absent, as clients of both APIs expect.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Collection, Mapping
from typing import Any

from sgc.runtime.engine.http.errors import bad

UINT32 = 2**32 - 1
Refused = tuple[Any, ...]
"""Why a parameter is refused, and the values of it that have no effect and so are accepted."""


class Fields:
    """where: the prefix of a field's name in messages, such as `sampling_params.`."""

    def __init__(self, values: Mapping[str, Any], where: str = "") -> None:
        self._values = {name: value for name, value in values.items() if value is not None}
        self.where = where

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str) -> Any:
        return self._values.get(name)

    def check_known(self, known: Collection[str], refused: Mapping[str, Refused]) -> None:
        """Raises HttpError for unknown fields, and for `refused` ones that have an effect."""
        for name, value in self._values.items():
            if name in refused:
                why, *neutral = refused[name]
                if value and value not in neutral:
                    message = f"{self.where}{name} is not supported: {why}"
                    raise bad(message, self.where + name, "unsupported_parameter")
            elif name not in known:
                message = f"{self.where}{name[:80]} is not a parameter that this engine knows"
                raise bad(message, self.where + name[:80], "unknown_parameter")

    def number(self, name: str, default: float) -> float:
        """A finite number."""
        value = self._values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "a number", value)
        try:
            found = float(value)
        except OverflowError as error:
            raise self._wrong(name, "a finite number", value) from error
        if not math.isfinite(found):
            raise self._wrong(name, "a finite number", value)
        return found

    def integer(self, name: str, default: int = 0, low: int = 0, high: int = UINT32) -> int:
        value = self._values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(name, "an integer", value)
        if name in self._values and not low <= value <= high:
            raise self._wrong(name, f"an integer from {low} to {high}", value)
        return value

    def boolean(self, name: str, default: bool = False) -> bool:
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def text(self, name: str, default: str = "") -> str:
        value = self._values.get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, "a text", value)
        return value

    def needed_text(self, name: str) -> str:
        """A text that must be given."""
        if name not in self._values:
            where = self.where + name
            raise bad(f"{where} is missing", where, "invalid_type")
        return self.text(name)

    def texts(self, name: str) -> list[str]:
        """A list of texts, given as a text or a list; empty if absent."""
        value = self._values.get(name, [])
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise self._wrong(name, "a text or a list of texts", value)
        return found

    def ids(self, name: str) -> list[int]:
        """A list of token ids."""
        value = self._values.get(name, [])
        if not is_ids(value):
            raise self._wrong(name, "a list of token ids", value)
        return list(value)

    def object(self, name: str) -> Fields:
        value = self._values.get(name, {})
        if not isinstance(value, dict):
            raise self._wrong(name, "an object", value)
        return Fields(value, f"{self.where}{name}.")

    def _wrong(self, name: str, expected: str, found: Any) -> Exception:
        message = f"{self.where}{name} must be {expected}, found {reprlib.repr(found)}"
        return bad(message, self.where + name, "invalid_type")


def is_ids(value: Any) -> bool:
    """Whether it is a list of what could be token ids."""
    return isinstance(value, list) and all(
        isinstance(each, int) and not isinstance(each, bool) and 0 <= each <= UINT32
        for each in value
    )
