"""Texts that match a pattern of `re`, drawn at random."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from random import Random
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from sgc.ir.regex_tree import REPEATS, bodies

MAX_MORE = 3  # repetitions beyond the minimum
MAX_CHARS = 400
_SOME = "abcxyzABC0123789 _-.,:;!?()[]{}'\"/\n\té"
_CATEGORIES: Mapping[Any, Callable[[str], bool]] = {
    sre.CATEGORY_DIGIT: str.isdigit,
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
}
_NOT = {
    sre.CATEGORY_NOT_DIGIT: sre.CATEGORY_DIGIT,
    sre.CATEGORY_NOT_SPACE: sre.CATEGORY_SPACE,
    sre.CATEGORY_NOT_WORD: sre.CATEGORY_WORD,
}


def sample_of(pattern: str, random: Random) -> str | None:
    """A text in which the pattern is found, as a rule; None if the pattern cannot be parsed.

    Assertions are treated as the empty text, so a text may fail to match.
    """
    tree = _parsed(pattern)
    return None if tree is None else _Sampler(random).sequence(tree)[:MAX_CHARS]


@lru_cache(maxsize=64)
def _parsed(pattern: str) -> Any:
    try:
        return _parser.parse(pattern)
    except (ValueError, RecursionError, OverflowError, re.error):
        return None


class _Sampler:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._groups: dict[int, str] = {}

    def sequence(self, tree: Any) -> str:
        return "".join(self._item(op, value) for op, value in tree)

    def _item(self, op: Any, value: Any) -> str:
        if op is sre.LITERAL:
            return chr(value)
        if op is sre.ANY:
            return self._random.choice(_SOME.replace("\n", ""))
        if op is sre.NOT_LITERAL:
            return self._random.choice(_SOME.replace(chr(value), ""))
        if op is sre.IN:
            return self._of_set(value)
        if op is sre.GROUPREF:
            return self._groups.get(value, "")
        within = bodies(op, value)
        if not within:
            return ""
        body, _ = self._random.choice(within)
        if op in REPEATS:
            low, high = value[0], min(value[1], value[0] + MAX_MORE)
            return "".join(self.sequence(body) for _ in range(self._random.randint(low, high)))
        found = self.sequence(body)
        if op is sre.SUBPATTERN and value[0] is not None:
            self._groups[value[0]] = found
        return found

    def _of_set(self, items: Any) -> str:
        some = [char for char in _SOME if _is_in(items, char)]
        if items[0][0] is not sre.NEGATE:
            some += [chr(value) for op, value in items if op is sre.LITERAL]
            some += [chr(self._random.randint(*value)) for op, value in items if op is sre.RANGE]
        return self._random.choice(some) if some else ""


def _is_in(items: Any, char: str) -> bool:
    is_negated = items[0][0] is sre.NEGATE
    return any(_has(op, value, char) for op, value in items) is not is_negated


def _has(op: Any, value: Any, char: str) -> bool:
    if op is sre.LITERAL:
        return chr(value) == char
    if op is sre.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    if op is not sre.CATEGORY:
        return False
    if value in _NOT:
        return not _CATEGORIES[_NOT[value]](char)
    return value in _CATEGORIES and _CATEGORIES[value](char)
