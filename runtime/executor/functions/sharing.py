"""Which of a run's values share a list, dict or other object that can be changed.

A run's values are never changed: code that changes one gives another. Where Python would see the
change through a second value that holds the same object, the run stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sgc.errors import ProgramError

_FIXED = (str, int, float, bool, type(None), bytes, complex, range)


class Several(list[Any]):
    """What code gives for several variables, which nothing sees but what takes them out of it."""


class Sharing:
    """The objects that several values of a run hold."""

    def __init__(self) -> None:
        self._shared: dict[int, Any] = {}  # they stay, so that their ids stay theirs
        self._displays: dict[int, Any] = {}

    def note_display(self, value: Any) -> None:
        """A list or dict was put together for one node alone: nothing else has it."""
        self._displays[id(value)] = value

    def note(self, result: Any, args: Iterable[Any]) -> None:
        """A function has made a value of others."""
        found = changeable([result])
        if found:
            given = changeable(args).keys() - self._displays.keys()
            self._shared.update((key, found[key]) for key in found.keys() & given)

    def note_among(self, results: Iterable[Any]) -> None:
        """Code has given several values."""
        seen: dict[int, Any] = {}
        for result in results:
            found = changeable([result])
            self._shared.update((key, found[key]) for key in found.keys() & seen.keys())
            seen |= found

    def check(self, value: Any) -> None:
        """Raises ProgramError for a value that is to be changed, and shares what it holds."""
        if not self._shared.keys().isdisjoint(changeable([value])):
            raise ProgramError(
                f"a {type(value).__name__} is changed that another value holds too, or a part of",
                hint="change a copy of it, copy.deepcopy(x); or run it with --interpret",
            )


def changeable(values: Iterable[Any]) -> dict[int, Any]:
    """The objects in some values that can be changed, by identity."""
    found: dict[int, Any] = {}
    queue = list(values)
    while queue:
        value = queue.pop()
        if isinstance(value, (*_FIXED, Several)) or id(value) in found:
            continue
        if not isinstance(value, (tuple, frozenset)):
            found[id(value)] = value
        if isinstance(value, Mapping):
            queue += value.values()
        elif isinstance(value, Iterable):
            queue += value
    return found
