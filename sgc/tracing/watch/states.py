"""The state of one object of any class from outside of a program: the state before a trace, whether
it has changed, and how the trace's changes are undone.
"""

from __future__ import annotations

import contextlib
import dis
import sys
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from functools import lru_cache, partial
from operator import is_not
from os import PathLike
from typing import Any, Protocol

from sgc.core.places import is_of_users, is_users_own
from sgc.lang.definition import Definition
from sgc.lang.tools import Tool
from sgc.tracing.snapshots.objects import names_of
from sgc.tracing.values.abstract import AbstractList, AbstractNumber, AbstractText, marked
from sgc.tracing.watch.guards import plain
from sgc.tracing.watch.hidden import Hidden, hidden_state

_CONTAINERS = (list, dict, set, deque)
_DATA = (list, dict, set, tuple)
_MAX_VALUES = 1000  # of data that is compared by content
_HEAP_TYPE = 1 << 9


class State(Protocol):
    """name: the variable that holds the object."""

    name: str

    @property
    def is_changed(self) -> bool: ...

    def put_back(self, written: frozenset[str] | None) -> None:
        """Undoes the trace's changes. written: the attributes that its code writes; None for all.
        Other attributes that have changed may be another thread's, and stay.
        """


def states(name: str, value: Any) -> Iterator[State]:
    """The states of an object; an object of a user's class derived from list, say, has two."""
    if issubclass(type(value), _CONTAINERS):
        yield Items(name, value)
    if is_object(value):
        yield Attributes(name, value)
    if (read := hidden_state(value)) is not None:
        yield Hidden(name, value, read)


def parts(value: Any) -> Collection[Any] | None:
    """The values that an object has; None if neither it nor they can change."""
    found: list[Any] = []
    is_known = False
    for holds, parts_of in _PARTS.items():
        if issubclass(type(value), holds):  # `isinstance` would ask a proxy for its `__class__`
            is_known = True
            found += parts_of(value)
    if is_object(value):
        is_known = True
        found += _attributes(value).values()
    return found if is_known or hidden_state(value) is not None else None


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict):
        kind = OrderedDict if isinstance(value, OrderedDict) else dict  # they keep separate orders
        return [each for pair in kind.items(value) for each in pair]
    return list(value)


def _of_special_methods(kind: type) -> list[Any]:
    """The defaults of the parameters of special methods, which Python calls by itself."""
    methods = vars(kind).values() if _is_of_users(kind) else ()
    return [each for method in methods if type(method) is types.FunctionType
            for each in defaults_of(method).values()]  # fmt: skip


def defaults_of(function: types.FunctionType) -> dict[str, Any]:
    """The defaults of a function's parameters, by their names."""
    given, code = function.__defaults__ or (), function.__code__
    names = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    return dict(zip(names, given, strict=True)) | (function.__kwdefaults__ or {})


# The contents of values of types that have no attributes which Python could list.
_PARTS: dict[Any, Any] = {
    (*_CONTAINERS, tuple, frozenset): _items,
    partial: lambda value: [value.func, *value.args, *value.keywords.values()],
    (types.MethodType, types.BuiltinMethodType): lambda value: [value.__self__],
    weakref.ref: lambda value: [value()],
    type: _of_special_methods,
}


# -- attributes ---------------------------------------------------------------------------------


class Attributes:
    """The attributes of one object, class or function."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self._value = name, value
        self._before = _attributes(value)

    @property
    def is_changed(self) -> bool:
        now, before = _attributes(self._value), self._before
        if any(key not in now for key in before):
            return True
        added = [key for key in now if key not in before]
        if any(not (key.startswith("_") and _is_librarys(self._value)) for key in added):
            return True  # private attributes that a library's object adds are no change
        return any(not _is_same(now[key], item) for key, item in before.items())

    def put_back(self, written: frozenset[str] | None) -> None:
        now, before, value = _attributes(self._value), self._before, self._value
        if _is_librarys(value):  # the library's own code writes its attributes
            written = None
        for key in _changed(now, before, written):
            if key in before:
                _plainly("__setattr__", value, key, before[key])
            else:
                _plainly("__delattr__", value, key)


def _changed(
    now: Mapping[str, Any], before: Mapping[str, Any], written: frozenset[str] | None
) -> list[str]:
    """The names that a trace has changed, removed or added. written: as in `put_back`."""
    return [
        key for key in now.keys() | before.keys()
        if (key not in now or key not in before or now[key] is not before[key])
        and (written is None or key in written or is_of_trace(now.get(key)))
    ]  # fmt: skip


def _plainly(method: str, value: Any, *args: Any) -> None:
    """Calls `object`'s or `type`'s method, since the class's own may refuse, as a frozen
    dataclass's does."""
    try:
        getattr(type if isinstance(value, type) else object, method)(value, *args)
    except TypeError:  # an object of a C class, which has a method of its own
        getattr(type(value), method)(value, *args)


def is_object(value: Any) -> bool:
    """Whether a value is a user's or a library's object with attributes, or a user's class or
    function; but not a new function of the program with enclosing variables, whose attributes the
    program may set.
    """
    if type(value) is types.FunctionType:
        is_kept = not value.__closure__ or bool(vars(value))
        return is_kept and is_users_own(value.__code__, value.__globals__)
    kind = value if issubclass(type(value), type) else type(value)
    if issubclass(kind, (Enum, BaseException, types.ModuleType)):
        return False
    return _is_of_users(kind) or (kind is not value and _is_librarys(value))


def _is_of_users(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    is_users = isinstance(file, str) and is_of_users(kind.__module__, file)
    return is_users and bool(kind.__flags__ & _HEAP_TYPE)


# Modules whose objects are not watched: this package, and modules that are handled elsewhere.
_NOT_WATCHED = frozenset({"sgc", "sglang", "typing", "types", "abc", "re"})


def _is_librarys(value: Any) -> bool:
    """Whether a value is an object, with attributes, of a library's class that may change."""
    kind = type(value)
    if kind is types.SimpleNamespace or isinstance(value, (Definition, Tool)):
        return True
    if kind.__module__.partition(".")[0] in _NOT_WATCHED:
        return False  # an abstract value does not show its attributes
    is_fixed = issubclass(kind, (PathLike, types.FunctionType, types.ModuleType, type))
    if is_fixed or not kind.__flags__ & _HEAP_TYPE:
        return False
    return _own(value) is not None or any(names_of(kind))


def _attributes(value: Any) -> dict[str, Any]:
    own = _own(value) or {}
    if issubclass(type(value), type):
        return {key: item for key, item in own.items() if not key.startswith("__")}
    slots: dict[str, Any] = {}
    for name in names_of(type(value)):
        with contextlib.suppress(AttributeError):  # of a slot that is not set
            slots[name] = object.__getattribute__(value, name)
    return {**own, **slots}


_OF_C = (types.GetSetDescriptorType, types.MemberDescriptorType)


def _own(value: Any) -> Mapping[str, Any] | None:
    """The `__dict__` of an object or class, read without Python code of its class, which may do
    anything; None if there is none, or if such code makes it up, as a proxy's does."""
    kind: type = type(value)
    for base in kind.__mro__:
        found: Any = type.__getattribute__(base, "__dict__").get("__dict__")
        if found is not None:
            own: Mapping[str, Any] | None = None
            if isinstance(found, _OF_C):
                own = found.__get__(value)
            return own
    get: Any = kind.__getattribute__
    if isinstance(get, types.WrapperDescriptorType):  # as for `threading.local`
        with contextlib.suppress(AttributeError):
            own = get(value, "__dict__")
            return own
    return None


def _is_same(now: Any, before: Any) -> bool:
    """Whether a value is the same object as before, or equal small data."""
    if now is before:
        return True
    if not (_is_small([now]) and _is_small([before])):
        return False
    text = plain(now)
    return text is not None and text == plain(before)


def _is_small(values: list[Any]) -> bool:
    """Whether values are small data, which each run of a trace can afford to read."""
    n_left = _MAX_VALUES
    while values:
        value = values.pop()
        n_left -= 1
        if is_of_trace(value):
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


def is_of_trace(value: Any) -> bool:
    return marked(value) or isinstance(value, (AbstractText, AbstractNumber, AbstractList))


@lru_cache(maxsize=4096)
def written_by(code: types.CodeType) -> frozenset[str] | None:
    """The attributes that a function writes; None if it may write any."""
    if not _SETTING.isdisjoint(code.co_names):
        return None
    found = (each for each in dis.get_instructions(code) if each.opname in _WRITES)
    return frozenset(each.argval for each in found)


_SETTING = frozenset({"setattr", "delattr", "vars", "__dict__", "__setattr__", "__delattr__"})
_WRITES = ("STORE_ATTR", "DELETE_ATTR")


# -- items, and the names of modules ------------------------------------------------------------


class Items:
    """The items of one list, dict, set or deque."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self._value = name, value
        self._before = _items(value)

    @property
    def is_changed(self) -> bool:
        now = _items(self._value)
        return len(now) != len(self._before) or any(map(is_not, now, self._before))

    def put_back(self, written: frozenset[str] | None) -> None:
        """Undoes all changes."""
        if not self.is_changed:
            return
        value, before = self._value, self._before
        if isinstance(value, list):
            list.__setitem__(value, slice(None), before)
        elif isinstance(value, dict):
            kind = OrderedDict if isinstance(value, OrderedDict) else dict
            kind.clear(value)
            for key, item in zip(before[::2], before[1::2], strict=True):
                kind.__setitem__(value, key, item)
        elif isinstance(value, set):
            set.clear(value)
            set.update(value, before)
        else:
            deque.clear(value)
            deque.extend(value, before)


class ModuleNames:
    """The values of a module's names, except names of other modules, which an import may add.
    names: the names to compare; None for all."""

    def __init__(self, name: str, module: types.ModuleType, names: Collection[str] | None) -> None:
        self.name, self._module, self._names = name, module, names
        self._before = self._now()

    def _now(self) -> dict[str, Any]:
        every = vars(self._module).items()
        return {
            key: item for key, item in every
            if not isinstance(item, types.ModuleType)
            and (self._names is None or key in self._names)
        }  # fmt: skip

    @property
    def is_changed(self) -> bool:
        now = self._now()
        are_same = now.keys() == self._before.keys()
        return not are_same or any(item is not self._before[key] for key, item in now.items())

    def put_back(self, written: frozenset[str] | None) -> None:
        own = vars(self._module)
        for key in _changed(self._now(), self._before, written):
            if key in self._before:
                own[key] = self._before[key]
            else:
                del own[key]
