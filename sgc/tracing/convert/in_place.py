"""Converts, in place, users' functions that are not called from converted code.

Python itself calls special methods, properties, sort keys and callbacks of libraries. The first
call of one ends the trace (`Unconverted`); then all functions of its module get converted code, and
the trace starts anew. When it ends, they get their own code back. Meanwhile other threads may run
them: without a trace, operators do what Python does.
"""

from __future__ import annotations

import builtins
import gc
import threading
from dataclasses import dataclass
from functools import cached_property, partial
from types import CellType, CodeType, FrameType, FunctionType, MethodType
from typing import Any

from sgc.core.places import IS_OWN, is_users_own
from sgc.core.stops import INTERPRET, stop
from sgc.tracing.convert.source import NoSource, converted
from sgc.tracing.operators import OPERATORS


class Unconverted(BaseException):
    """Ends a trace that calls a function which must be converted in place."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__()
        self.names = names  # the function's globals


@dataclass(slots=True)
class _Held:
    function: FunctionType
    code: CodeType  # its original code
    n_traces: int = 0


_held: dict[int, _Held] = {}  # converted functions, by id
_made: dict[int, CodeType] = {}  # the converted code that these have now
_lock = threading.Lock()
MAX_NEAR = 10_000
_HOLDERS = frozenset(
    (dict, list, tuple, set, frozenset, property, classmethod, staticmethod, partial,
     cached_property, CellType, MethodType)
)  # fmt: skip


class InPlace:
    """The functions that one trace has converted in place."""

    def __init__(self) -> None:
        self._seen: dict[int, CodeType] = {}  # checked once
        self._modules: dict[int, dict[str, Any]] = {}
        self._whole: set[int] = set()  # modules of which all functions are converted
        self._ours: dict[int, FunctionType] = {}
        self._codes: set[int] = set()  # that these have now

    def __enter__(self) -> InPlace:
        return self

    def __exit__(self, *exc_info: object) -> None:
        with _lock:
            for key in self._ours:
                held = _held[key]
                held.n_traces -= 1
                if not held.n_traces:
                    _made.pop(id(held.function.__code__), None)
                    held.function.__code__ = held.code
                    del _held[key]

    def needs(self, frame: FrameType) -> bool:
        """Whether a call that begins is of a user's function that is not converted, or converted
        only for another trace.
        """
        code, names = frame.f_code, frame.f_globals
        if self._seen.get(id(code)) is code or id(names) in self._whole:
            return False
        if id(code) in self._codes:
            return False
        is_own = code.co_name != "<module>" and is_users_own(code, names)
        if is_own and _is_being_loaded(names, frame):
            return False  # checked again when the program calls it
        self._seen[id(code)] = code
        if not is_own:
            return False
        try:
            return converted(code, names) != code or _made.get(id(code)) is code
        except NoSource as error:
            if not code.co_filename.endswith(".py"):  # a library made it, as a dataclass's methods
                return False
            stop(f"{code.co_name} cannot be traced: {error}", INTERPRET)

    def has(self, names: dict[str, Any]) -> bool:
        """Whether the functions with these globals are converted in place."""
        return id(names) in self._modules

    def convert(self, names: dict[str, Any]) -> None:
        """Converts the functions of a module: at first those that its names lead to, which are
        mostly all; and all, if one of them is called that is not converted yet, or a generator
        goes on that began before.
        """
        vars(builtins).update(OPERATORS)  # the modules' own globals must not change
        is_again = id(names) in self._modules
        self._modules[id(names)] = names
        self._seen.clear()
        with _lock:
            for each in _all_of(names) if is_again else _near(names):
                if id(each) not in self._ours:
                    self._convert(each)
        if is_again:
            self._whole.add(id(names))

    def _convert(self, function: FunctionType) -> None:
        key = id(function)
        if key not in _held:
            try:
                code = converted(function.__code__, function.__globals__)
            except NoSource:
                return
            if code == function.__code__:
                return
            _held[key] = _Held(function, function.__code__)
            function.__code__ = code
            _made[id(code)] = code
        _held[key].n_traces += 1
        self._ours[key] = function
        self._codes.add(id(function.__code__))


def _is_being_loaded(names: dict[str, Any], frame: FrameType) -> bool:
    """Whether a module's own code calls a function of it: the program imports it. A trace that ends
    there would load the module anew, and meet another function."""
    outer = frame.f_back
    while outer is not None and not IS_OWN[outer.f_globals.get("__name__", "")]:
        if outer.f_code.co_name == "<module>" and outer.f_globals is names:
            return True
        outer = outer.f_back
    return False


def own_code(function: FunctionType) -> CodeType:
    """A function's original code."""
    held = _held.get(id(function))
    return held.code if held is not None and held.function is function else function.__code__


def _near(names: dict[str, Any]) -> list[FunctionType]:
    """The functions of a module that its names lead to through classes, wrappers and containers,
    and those that other traces have converted."""
    found = [held.function for held in _held.values() if held.function.__globals__ is names]
    seen: set[int] = set()
    todo: list[Any] = list(names.values())
    while todo and len(seen) < MAX_NEAR:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if type(each) is FunctionType:
            if each.__globals__ is names:
                found.append(each)
            todo += each.__closure__ or ()
            todo += each.__defaults__ or ()
            todo += (each.__kwdefaults__, vars(each))
        elif issubclass(type(each), type):
            attributes = type.__getattribute__(each, "__dict__")
            if attributes.get("__module__") == names.get("__name__"):
                todo += attributes.values()
        elif type(each) in _HOLDERS:
            todo += gc.get_referents(each)
    return found


def _all_of(names: dict[str, Any]) -> list[FunctionType]:
    """All functions of a module. The time it takes grows with all that the process holds."""
    return [each for each in _referrers(names) if type(each) is FunctionType]


def _referrers(names: dict[str, Any]) -> list[Any]:
    is_frozen = gc.get_freeze_count() > 0
    if is_frozen:  # get_referrers skips frozen objects
        gc.unfreeze()
    found = gc.get_referrers(names)
    if is_frozen:
        gc.freeze()
    return found
