"""Converts the functions of the user's that no converted code calls, where they are.

Python itself calls special methods, properties, keys of sorts and callbacks of libraries. The first
call of one ends the trace (`Unconverted`); all functions of its module are then given their
converted code, and the trace begins anew. They have their own code again when it is over.
Meanwhile other threads may run them: without a trace, operators do what Python does.
"""

from __future__ import annotations

import builtins
import gc
import threading
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import Any

from sgc.core.places import is_users_own
from sgc.core.stops import INTERPRET, stop
from sgc.tracing.convert.source import NoSource, converted
from sgc.tracing.operators import OPERATORS


class Unconverted(BaseException):
    """Ends a trace in which a function is called that has to be converted in place."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__()
        self.names = names  # its globals


@dataclass(slots=True)
class _Held:
    function: FunctionType
    code: CodeType  # its own
    n_traces: int = 0


_held: dict[int, _Held] = {}  # by identity
_made: dict[int, CodeType] = {}  # the codes that these have now
_lock = threading.Lock()


class InPlace:
    """What one trace has converted in place."""

    def __init__(self) -> None:
        self._seen: dict[int, CodeType] = {}  # each once: a generator may have begun before
        self._modules: dict[int, dict[str, Any]] = {}
        self._ours: dict[int, FunctionType] = {}

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
        """Whether a call that begins is of a function of the user's that is not converted, or for
        another trace alone.
        """
        code, names = frame.f_code, frame.f_globals
        if self._seen.get(id(code)) is code or id(names) in self._modules:
            return False
        self._seen[id(code)] = code
        if code.co_name == "<module>" or not is_users_own(code, names):
            return False
        try:
            return converted(code, names) != code or _made.get(id(code)) is code
        except NoSource as error:
            if not code.co_filename.endswith(".py"):  # made by a library: methods of a dataclass
                return False
            stop(f"{code.co_name} cannot be traced: {error}", INTERPRET)

    def convert(self, names: dict[str, Any]) -> None:
        """Converts the functions of a module."""
        vars(builtins).update(OPERATORS)  # their own globals are none of ours to change
        self._modules[id(names)] = names
        with _lock:
            for each in _referrers(names):
                if type(each) is FunctionType and id(each) not in self._ours:
                    self._convert(each)

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


def own_code(function: FunctionType) -> CodeType:
    """The code of a function as it is written."""
    held = _held.get(id(function))
    return held.code if held is not None and held.function is function else function.__code__


def _referrers(names: dict[str, Any]) -> list[Any]:
    is_frozen = gc.get_freeze_count() > 0
    if is_frozen:  # what is frozen is not looked through
        gc.unfreeze()
    found = gc.get_referrers(names)
    if is_frozen:
        gc.freeze()
    return found
