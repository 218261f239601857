"""What is known of a variable name that is made at run time, as in `gen(f"answer_{i}")`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sgc.ir.types import INT, TEXT, Type, list_of
from sgc.ir.types import JSON as ANY
from sgc.tracing.kinds.text_types import is_textual

PAIRS = list_of(ANY)  # of names and their values
_WHOLE_NUMBER, _TEXT = "-?[0-9]+", ".*"


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A regular expression for all names that a name may be, and how all of them begin and end."""

    pattern: str
    start: str
    end: str

    @classmethod
    def of(cls, parts: Iterable[str | Type | tuple[str, ...]]) -> NamePattern:
        """The pattern of a name made of plain texts, choices of texts, and typed values."""
        found = list(parts)
        start, end = (each if isinstance(each, str) else "" for each in (found[0], found[-1]))
        return cls("".join(map(_shown, found)), start, end)

    def may_be(self, name: str) -> bool:
        return re.fullmatch(self.pattern, name, re.DOTALL) is not None

    def may_equal(self, other: NamePattern) -> bool:
        """Whether a name may match both patterns; False only if no name does."""
        are_alike = self.start.startswith(other.start) or other.start.startswith(self.start)
        return are_alike and (self.end.endswith(other.end) or other.end.endswith(self.end))

    @property
    def may_be_empty(self) -> bool:
        return self.may_be("")


def _shown(part: str | Type | tuple[str, ...]) -> str:
    if isinstance(part, Type):
        return _WHOLE_NUMBER if part == INT else _TEXT
    return f"(?:{'|'.join(map(re.escape, [part] if isinstance(part, str) else part))})"


def joined_type(one: Type | None, other: Type) -> Type:
    """The type of a value that has one of two types."""
    if one is None or one == other:
        return other
    return TEXT if is_textual(one) and is_textual(other) else ANY
