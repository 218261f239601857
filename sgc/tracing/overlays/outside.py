"""Objects, classes and functions of the user's modules, which a traced program must not change.

Plain data is copied for a trace. An object is not, as the program may ask for its identity, nor is
a list, dict or set that holds one: they are compared when a run of the trace ends, and the trace's
changes are undone.
"""

from __future__ import annotations

import contextlib
import dis
import sys
from collections import deque
from collections.abc import Collection
from enum import Enum
from functools import lru_cache
from itertools import chain
from operator import is_not
from types import CodeType, FunctionType, ModuleType
from typing import Any

from sgc.core.places import is_of_users, is_users_module, is_users_own
from sgc.tracing.snapshots.objects import names_of
from sgc.tracing.values.abstract import AbstractList, AbstractNumber, AbstractText, marked
from sgc.tracing.watch.guards import names_of as names_in
from sgc.tracing.watch.guards import plain

_DATA = (list, dict, set, tuple)
MAX_VALUES = 1000
MAX_FOUND = 200_000  # objects that are looked for in one value
MAX_KEPT = 1000  # of them, those whose changes are looked for
_CONTAINERS = (list, dict, set, deque)


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
        # Not the class's own, which may refuse it, as that of a frozen dataclass.
        change: Any = type if isinstance(self._value, type) else object
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


class OutsideItems:
    """The items of one list, dict, set or deque before a trace."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self._value = name, value
        self._before = _items(value)

    @property
    def is_changed(self) -> bool:
        now = _items(self._value)
        return len(now) != len(self._before) or any(map(is_not, now, self._before))

    def put_back(self, written: frozenset[str]) -> None:
        """Undoes all changes; `written` is for objects."""
        if not self.is_changed:
            return
        value, before = self._value, self._before
        if isinstance(value, list):
            list.__setitem__(value, slice(None), before)
        elif isinstance(value, dict):
            dict.clear(value)
            dict.update(value, zip(before[::2], before[1::2], strict=True))
        elif isinstance(value, set):
            set.clear(value)
            set.update(value, before)
        else:
            deque.clear(value)
            deque.extend(value, before)


class OutsideModule:
    """What the names of a module stood for before a trace, but for those of other modules, which an
    import may add. names: those to compare, if not all."""

    def __init__(self, name: str, module: ModuleType, names: Collection[str] | None) -> None:
        self.name, self._module, self._names = name, module, names
        self._before = self._now()

    def _now(self) -> dict[str, Any]:
        every = vars(self._module).items()
        return {
            key: item for key, item in every
            if not isinstance(item, ModuleType) and (self._names is None or key in self._names)
        }  # fmt: skip

    @property
    def is_changed(self) -> bool:
        now = self._now()
        are_same = now.keys() == self._before.keys()
        return not are_same or any(item is not self._before[key] for key, item in now.items())

    def put_back(self, written: frozenset[str]) -> None:
        """Undoes the trace's changes, as those of an object."""
        own = vars(self._module)
        for key, item in self._now().items():
            is_other = key not in self._before or item is not self._before[key]
            if is_other and (_is_of_trace(item) or key in written):
                if key in self._before:
                    own[key] = self._before[key]
                else:
                    del own[key]


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [each for pair in dict.items(value) for each in pair]
    return list(value)


def found_in(value: Any) -> list[Any]:
    """The containers and watched objects that a value from outside is or holds."""
    found: dict[int, Any] = {}
    left = [value]
    while left and len(found) < MAX_FOUND:
        each = left.pop()
        is_container = isinstance(each, (*_CONTAINERS, tuple, frozenset))
        if id(each) in found or not (is_container or is_watched(each)):
            continue
        found[id(each)] = each
        left += _items(each) if is_container else _attributes(each).values()
    return [each for each in found.values() if not isinstance(each, (tuple, frozenset))]


class Watched:
    """The objects from outside that a run of the trace may reach. known: what the values that hold
    them hold, by id, for all runs of a trace."""

    def __init__(self, known: dict[int, tuple[Any, list[Any]]]) -> None:
        self._known = known
        self._kept: dict[
            int, list[Outside | OutsideItems | OutsideModule]
        ] = {}  # by the id of what holds them
        self._ids: set[int] = set()
        self._modules: set[tuple[int, int]] = set()  # with functions that read them

    def __contains__(self, value: object) -> bool:
        return id(value) in self._ids

    def add(self, name: str, value: Any) -> None:
        """Keeps what the objects and lists in a value are before the run."""
        if id(value) in self._kept:
            return
        if id(value) not in self._known:
            self._known[id(value)] = value, found_in(value)
        found = self._known[id(value)][1]
        self._ids.update(map(id, found))
        self._kept[id(value)] = [
            (OutsideItems if isinstance(each, _CONTAINERS) else Outside)(name, each)
            for each in found[:MAX_KEPT]
        ]

    def add_module(self, name: str, module: ModuleType, code: CodeType) -> None:
        """Keeps what a module is that a function reads: its names, and the values of those of them
        that the function has."""
        if (id(module), id(code)) in self._modules:
            return
        self._modules.add((id(module), id(code)))
        own, kept = vars(module), self._kept.setdefault(id(module), [])
        if not _is_own(module):
            kept.append(OutsideModule(name, module, written_by(code)))
            return
        if not kept:
            kept.append(OutsideModule(name, module, None))
        for each in names_in(code) & own.keys():
            value = own[each]
            if isinstance(value, ModuleType):
                self.add_module(f"{name}.{each}", value, code)
            else:
                self.add(f"{name}.{each}", value)

    def add_imported(self, code: CodeType, package: str) -> None:
        """Keeps the modules that a function imports when it runs."""
        names = {*imported_by(code)}
        if names:  # `from . import x` names none
            names |= {f"{package}.{name}" for name in (*names, *names_in(code))}
        for name in sorted(names & sys.modules.keys()):
            self.add_module(name, sys.modules[name], code)

    def changed(self) -> str | None:
        """The name of a variable whose value has changed."""
        every = chain.from_iterable(self._kept.values())
        return next((each.name for each in every if each.is_changed), None)

    def put_back(self, written: frozenset[str]) -> None:
        for each in chain.from_iterable(self._kept.values()):
            each.put_back(written)


@lru_cache(maxsize=4096)
def written_by(code: CodeType) -> frozenset[str]:
    """The attributes that a function writes."""
    found = (each for each in dis.get_instructions(code) if each.opname == "STORE_ATTR")
    return frozenset(each.argval for each in found)


@lru_cache(maxsize=4096)
def imported_by(code: CodeType) -> tuple[str, ...]:
    """The modules that a function, or a function nested in it, imports."""
    found = [each.argval for each in dis.get_instructions(code) if each.opname == "IMPORT_NAME"]
    for constant in code.co_consts:
        found += imported_by(constant) if isinstance(constant, CodeType) else ()
    return tuple(found)


def _is_own(module: ModuleType) -> bool:
    """Whether a module is in the user's code, and not in an installed package."""
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and is_users_module(module.__name__, file)


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
    return is_users


def _attributes(value: Any) -> dict[str, Any]:
    own = getattr(value, "__dict__", {})
    if isinstance(value, type):
        return {key: item for key, item in own.items() if not key.startswith("__")}
    slots: dict[str, Any] = {}
    for name in names_of(type(value)):
        with contextlib.suppress(AttributeError):  # of a slot that is not set
            slots[name] = object.__getattribute__(value, name)
    return {**own, **slots}


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
