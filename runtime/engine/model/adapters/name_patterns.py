"""Patterns of module names in an adapter's settings: regular expressions from a folder that may
come from anywhere. Only patterns that end soon on any name are run: no repeated groups, few
repeats.
"""

from __future__ import annotations

import re
from functools import lru_cache
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

MAX_CHARS = 256
MAX_REPEATS = 2  # a match takes at most about this power, plus one, of the name's length
_SINGLE = {kinds.LITERAL, kinds.NOT_LITERAL, kinds.ANY, kinds.IN}
_REPEATS = {kinds.MAX_REPEAT, kinds.MIN_REPEAT}


def matches(pattern: str, name: str) -> bool:
    """Whether a name, or its end after a dot, matches. Raises ValueError for a pattern that is not
    allowed."""
    return len(name) <= MAX_CHARS and bool(_compiled(pattern).match(name))


@lru_cache(1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    if len(pattern) > MAX_CHARS:
        raise ValueError(f"a pattern of {len(pattern)} characters, of at most {MAX_CHARS}")
    try:
        n = _repeats(parser.parse(pattern))
        compiled = re.compile(rf"(?:.*\.)?(?:{pattern})$")
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"the pattern {pattern!r} is invalid: {error}") from error
    if n > MAX_REPEATS:
        raise ValueError(f"the pattern {pattern!r} repeats {n} times, of at most {MAX_REPEATS}")
    return compiled


def _repeats(parsed: Any) -> int:
    """The number of repeats; raises ValueError for constructs that may take long."""
    n = 0
    for kind, value in parsed:
        if kind in _REPEATS and value[1] == 1:  # optional
            n += _repeats(value[2])
        elif kind in _REPEATS:
            if len(value[2]) != 1 or value[2][0][0] not in _SINGLE:
                raise ValueError("a pattern repeats more than one character, which may take long")
            n += 1
        elif kind is kinds.SUBPATTERN:
            n += _repeats(value[-1])
        elif kind is kinds.BRANCH:
            n += sum(map(_repeats, value[1]))
        elif kind not in _SINGLE and kind is not kinds.AT:
            raise ValueError(f"a pattern has {str(kind).lower()}, which is not supported here")
    return n
