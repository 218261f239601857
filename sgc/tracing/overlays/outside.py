"""Objects and classes of the user's modules, which a program that is traced must not change.

Plain data is copied for a trace. An object has an identity that the program may ask for, so it
stays: its attributes are looked at when a run of the trace ends, and put back.
"""

from __future__ import annotations

import sys
from copy import deepcopy
from enum import Enum
from typing import Any

from sgc.core.places import is_of_users
from sgc.tracing.watch.guards import plain

_DATA = (list, dict, set)


class Outside:
    """One object or class as it was before a trace. name: of the variable that holds it."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self._value = name, value
        self._before = _attributes(value)
        self._seen = {key: _shown(item) for key, item in self._before.items()}
        self._contents = {
            key: deepcopy(item) for key, item in self._before.items() if type(item) in _DATA
        }

    @property
    def is_changed(self) -> bool:
        now = _attributes(self._value)
        return {key: _shown(item) for key, item in now.items()} != self._seen

    def put_back(self) -> None:
        now = _attributes(self._value)
        change: Any = type(self._value)
        for key in now.keys() - self._before.keys():
            change.__delattr__(self._value, key)
        for key, item in self._before.items():
            if key not in now or now[key] is not item:
                change.__setattr__(self._value, key, item)
            if key in self._contents and _shown(item) != self._seen[key]:
                _fill(item, deepcopy(self._contents[key]))


def is_watched(value: Any) -> bool:
    """Whether it is an object of a class of the user's, or such a class."""
    kind = value if isinstance(value, type) else type(value)
    if not kind.__flags__ & 1 << 9 or issubclass(kind, (Enum, BaseException)):
        return False
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    is_users = isinstance(file, str) and is_of_users(kind.__module__, file)
    return is_users and hasattr(value, "__dict__")


def _attributes(value: Any) -> dict[str, Any]:
    return {
        key: item
        for key, item in vars(value).items()
        if not (isinstance(value, type) and key.startswith("__"))
    }


def _shown(value: Any) -> object:
    """Equal for what is the same: data by its content, and others by what they are."""
    found = plain(value) if type(value) in (*_DATA, tuple, str, int, float, bool) else None
    return id(value) if found is None else found


def _fill(held: Any, contents: Any) -> None:
    held.clear()
    held.extend(contents) if isinstance(held, list) else held.update(contents)
