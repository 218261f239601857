"""Patterns matched in bounded time and memory; they may be hostile."""

from __future__ import annotations

import re
from typing import Any

from sgc.errors import UsageError
from sgc.runtime.executor.patterns.packages import needed

TIMEOUT_S = 1.0
# The package `regex` expands fixed repeats: this many characters take about 30 MB.
MAX_EXPANDED = 100_000
_TOKEN = re.compile(
    r"\\[pPN]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?:(?P<count>\d+)(?:,\d*)?|,\d*)\}|.",
    re.DOTALL,
)


class Pattern:
    """A pattern of Python's `re`. Raises UsageError when matching takes too long; call it in a
    thread.
    """

    def __init__(self, pattern: str) -> None:
        regex = needed("regex", "checking a pattern")
        self._shown = pattern if len(pattern) <= 60 else pattern[:57] + "..."
        if _expanded(pattern) > MAX_EXPANDED:
            raise UsageError(f"the pattern {self._shown!r} repeats too much")
        try:
            self._compiled = regex.compile(_plain(pattern))
        except (regex.error, RecursionError, OverflowError, MemoryError) as error:
            raise UsageError(f"the pattern {self._shown!r} is invalid: {error}") from error

    def is_whole(self, text: str) -> bool:
        return self._run(self._compiled.fullmatch, text)

    def is_in(self, text: str) -> bool:
        return self._run(self._compiled.search, text)

    def _run(self, match: Any, text: str) -> bool:
        try:
            return match(text, timeout=TIMEOUT_S, concurrent=True) is not None
        except (TimeoutError, MemoryError) as error:
            raise UsageError(
                f"the pattern {self._shown!r} cannot be checked: a reply of {len(text)} "
                f"characters takes over {TIMEOUT_S:g} s",
                hint="repeats inside repeats, such as (a|aa)+, take exponential time",
            ) from error


def _expanded(pattern: str) -> int:
    """An upper bound of the pattern's length with its fixed repeats expanded."""
    open_groups, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        if token[0] == "(":
            open_groups.append(0)
            continue
        if token[0] == ")" and len(open_groups) > 1:
            added = last = open_groups.pop()
        elif token["count"]:
            n = max(int(token["count"][:9]), 1)
            added, last = last * (n - 1), last * n
        else:
            added = last = 1
        open_groups[-1] += added
    return sum(open_groups)


def _plain(pattern: str) -> str:
    """Escapes braces that `re` reads as text: {e} is fuzzy matching in the package `regex`."""
    return _TOKEN.sub(lambda token: r"\{" if token[0] == "{" else token[0], pattern)
