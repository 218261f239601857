"""Stand-ins for clocks and random numbers in a program that is compiled with their values.

At each line they return what they returned there in the first run of the body (`ambient.py`). Only
the program's own names for clocks and generators are replaced. The hook sees reads by library code
but does not hold them, so if they matter, two traces differ, and the program is refused.
"""

from __future__ import annotations

import builtins
import datetime
import os
import random
import secrets
import time
import types
import uuid
from collections.abc import Callable
from copy import copy
from typing import Any

from sgc.core.places import here
from sgc.tracing.values.abstract import is_abstract
from sgc.tracing.watch.ambient import AmbientRun, refuse

_MODULES = (datetime, os, random, secrets, time, uuid)
_DATES: dict[type, tuple[str, ...]] = {
    datetime.date: ("today",),
    datetime.datetime: ("now", "today", "utcnow"),
}
_CLOCKS = (
    time.time, time.time_ns, time.perf_counter, time.perf_counter_ns, time.monotonic,
    time.monotonic_ns, time.process_time, time.process_time_ns, time.thread_time,
    time.thread_time_ns, time.localtime, time.gmtime, time.ctime, time.strftime, time.asctime,
)  # fmt: skip
_DRAWS = (
    uuid.uuid1, uuid.uuid4, os.urandom, secrets.token_bytes, secrets.token_hex,
    secrets.token_urlsafe, secrets.randbelow, secrets.randbits, secrets.choice,
)  # fmt: skip
_CALLABLE = (types.BuiltinFunctionType, types.FunctionType, types.MethodType)


class AmbientOverlay:
    """The stand-ins for clocks and random numbers in one run of a program's body."""

    def __init__(self, run: AmbientRun) -> None:
        self._run = run
        self._generators: dict[int, _HeldGenerator] = {}

    def holding(self, value: Any) -> Any:
        """The stand-in for a value that a program reads; the value itself if it needs none."""
        if isinstance(value, types.ModuleType):
            return _HeldModule(value, self) if value in _MODULES else value
        if isinstance(value, type):
            readers = next((names for of, names in _DATES.items() if of is value), None)
            return value if readers is None else _HeldDate(value, readers, self)
        if isinstance(value, random.Random):
            return self._generator(value)
        return self._function(value) if isinstance(value, _CALLABLE) else value

    def _function(self, value: Any) -> Any:
        of, name = getattr(value, "__self__", None), value.__name__
        if value in _CLOCKS or (isinstance(of, type) and name in _DATES.get(of, ())):
            return self.clock(value)
        if value in _DRAWS:
            return self._draw(value)
        return getattr(self._generator(of), name) if isinstance(of, random.Random) else value

    def _generator(self, original: random.Random) -> Any:
        if isinstance(original, random.SystemRandom):  # has no state to hold
            return original
        if id(original) not in self._generators:
            self._generators[id(original)] = _HeldGenerator(original, self._run)
        return self._generators[id(original)]

    def clock(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that returns at each line what it returned there in the first run."""
        return self._held(function, "reads the clock", self._run.clock)

    def _draw(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self._held(function, "draws a random number", self._run.draw)

    def _held(
        self,
        function: Callable[..., Any],
        what: str,
        hold: Callable[[str, Callable[[], Any]], Any],
    ) -> Callable[..., Any]:
        name = function.__qualname__

        def call(*args: Any, **kwargs: Any) -> Any:
            if any(map(is_abstract, (*args, *kwargs.values()))):
                refuse(f"{name}() of a value known only at run time")
            where = here()
            self._run.ambient.note(what, where)
            return hold(f"{where} {name} {args!r} {kwargs!r}", lambda: function(*args, **kwargs))

        call.__name__ = function.__name__
        return call

    def imported(self, *args: Any, **kwargs: Any) -> Any:
        """`import` in a program's body."""
        return self.holding(builtins.__import__(*args, **kwargs))


class _HeldGenerator:
    """Stands for a random generator: a copy, whose state before each draw is held.

    The drawn values are not held: a draw may choose an abstract value, or shuffle a list.
    """

    def __init__(self, original: random.Random, run: AmbientRun) -> None:
        self._original, self._copy, self._run = original, copy(original), run

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._copy, name)
        if not callable(method):
            return method

        def call(*args: Any, **kwargs: Any) -> Any:
            where = here()
            self._run.ambient.note("draws a random number", where)
            key = f"{where} {id(self._original)} {name}"
            self._copy.setstate(self._run.draw(key, self._copy.getstate))
            return method(*args, **kwargs)

        return call


class _HeldModule:
    """Stands for a module of clocks or random numbers."""

    def __init__(self, module: types.ModuleType, overlay: AmbientOverlay) -> None:
        self._module, self._overlay = module, overlay

    def __getattr__(self, name: str) -> Any:
        return self._overlay.holding(getattr(self._module, name))


class _HeldDate:
    """Stands for `date` or `datetime`: the class itself, except for methods that read the clock."""

    def __init__(self, of: type, readers: tuple[str, ...], overlay: AmbientOverlay) -> None:
        self._of, self._readers, self._overlay = of, readers, overlay

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._of(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        return self._overlay.clock(found) if name in self._readers else found

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self._of)

    def __subclasscheck__(self, other: type) -> bool:
        return issubclass(other, self._of)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._of

    def __hash__(self) -> int:
        return hash(self._of)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return handler(self._of)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (self._of,)
