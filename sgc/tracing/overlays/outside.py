"""Objects, classes and functions of the user's modules, which a traced program must not change.

Plain data is copied for a trace. An object is not, as the program may ask for its identity: its
attributes are compared when a run of the trace ends, and the trace's changes are undone.
"""

from __future__ import annotations

import dis
import sys
from enum import Enum
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from sgc.core.places import is_of_users, is_users_own
from sgc.tracing.values.abstract import AbstractList, AbstractNumber, AbstractText, marked
from sgc.tracing.watch.guards import plain

_DATA = (list, dict, set, tuple)
MAX_VALUES = 1000


class Outside:
    """The state of one object or class before a trace. name: the variable that holds it."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self._value = name, value
        self._before = _attributes(value)
        self._seen = {key: _shown(item) for key, item in self._before.items()}

    @property
    def is_changed(self) -> bool:
        now = _attributes(self._value)
        return {key: _shown(item) for key, item in now.items()} != self._seen

    def put_back(self, written: frozenset[str]) -> None:
        """Undoes the trace's changes: removes its values, and restores attributes in `written`,
        which its code writes. Other changes may be another thread's, and stay.
        """
        change: Any = type(self._value)
        for key, item in _attributes(self._value).items():
            is_other = key not in self._before or item is not self._before[key]
            if _is_of_trace(item) or (is_other and key in written):
                if key in self._before:
                    change.__setattr__(self._value, key, self._before[key])
                else:
                    change.__delattr__(self._value, key)
            elif type(item) is list:
                item[:] = [each for each in item if not _is_of_trace(each)]
            elif type(item) is dict:
                for name in [name for name, each in item.items() if _is_of_trace(each)]:
                    del item[name]


@lru_cache(maxsize=4096)
def written_by(code: CodeType) -> frozenset[str]:
    """The attributes that a function writes."""
    found = (each for each in dis.get_instructions(code) if each.opname == "STORE_ATTR")
    return frozenset(each.argval for each in found)


def is_watched(value: Any) -> bool:
    """Whether a value is a user's class or an object of one, or a function of the user's. One that
    the program makes anew, with variables of its own, is not: the program may set its attributes.
    """
    if type(value) is FunctionType:
        is_kept = not value.__closure__ or bool(vars(value))
        return is_kept and is_users_own(value.__code__, value.__globals__)
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
    """A key to compare values: small data by its content, others by their identity."""
    found = plain(value) if _is_small([value]) else None
    return id(value) if found is None else found


def _is_small(values: list[Any]) -> bool:
    """Whether values are small data, which each run of a trace can afford to read."""
    n_left = MAX_VALUES
    while values:
        value = values.pop()
        n_left -= 1
        if _is_of_trace(value):
            return False
        if isinstance(value, _DATA):
            if len(value) > n_left:
                return False
            values += value
            values += value.values() if isinstance(value, dict) else ()
        elif isinstance(value, (str, bytes)):
            n_left -= len(value) // 100
        if n_left < 0:
            return False
    return True


def _is_of_trace(value: Any) -> bool:
    return marked(value) or isinstance(value, (AbstractText, AbstractNumber, AbstractList))
