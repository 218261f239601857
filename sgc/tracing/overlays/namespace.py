"""Runs a traced function over an overlay of its globals.

The overlay is a copy of the function's globals with builtins that handle abstract values. Helper
functions of the same module run over the overlay too, so that the trace sees what they do. The
overlay is built anew for each trace, so a program cannot leave anything behind in it.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import os
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import sgc.tracing.overlays.itertools  # noqa: F401 (registers what it knows)
from sgc.core.places import is_users_own, user_loc
from sgc.errors import TraceError
from sgc.tracing.convert.in_place import own_code
from sgc.tracing.convert.source import NoSource, converted
from sgc.tracing.kinds.sets import copied_data, has_lost
from sgc.tracing.operators import OPERATORS
from sgc.tracing.overlays.ambient import AmbientOverlay
from sgc.tracing.overlays.builtins import BUILTINS
from sgc.tracing.overlays.iterators import held_back
from sgc.tracing.overlays.modules import seeing
from sgc.tracing.pieces.made import Sites
from sgc.tracing.values.abstract import INTERPRET, raise_stop, stop
from sgc.tracing.watch.ambient import AmbientRun, current_ambient
from sgc.tracing.watch.guards import is_namespace, names_of, plain
from sgc.tracing.watch.objects import Watched, refusal
from sgc.tracing.watch.states import written_by

_IS_OVERLAY = "__sgc_overlay__"
_COPIED = (list, dict, set)
MAX_COPIED_CHARS = 1_000_000  # of data that is copied, so that changes are found


class Overlays:
    """The overlays of one trace: one for each module whose functions it runs.

    is_converting: functions run converted; the trace check runs them as they are written, so that
    it finds errors of the conversion.
    """

    def __init__(self, is_converting: bool = True, sites: Sites | None = None) -> None:
        self._sites = sites or Sites()
        self._by_globals: dict[int, _Overlay] = {}
        self._watched = Watched(self._sites.outside)
        self._is_converting = is_converting
        ambient = current_ambient()
        self._ambient = None if ambient is None else AmbientOverlay(AmbientRun(ambient))

    def rebuild(self, function: types.FunctionType, is_counted: bool = False) -> types.FunctionType:
        """A copy of a function that runs over an overlay; if the copy writes a global, the trace
        stops. is_counted: the copy counts the turns of its loops, for `max_turns`."""
        key = id(function.__globals__)
        if key not in self._by_globals:
            self._by_globals[key] = _Overlay(
                function.__globals__, self._is_converting, self._ambient,
                self._sites, self._watched,
            )  # fmt: skip
        rebuilt: types.FunctionType = self._by_globals[key].rebuild(function, is_counted)
        return rebuilt

    def originals(self, names: dict[str, Any]) -> Mapping[str, Any]:
        """The user's own globals, for an overlay's globals."""
        for overlay in self._by_globals.values():
            if overlay.stands_in(names):
                return overlay.unchanged()
        return names

    def is_changed(self) -> bool:
        """Whether the trace has changed data outside the program so far."""
        return any(each.unchanged() is not each.original for each in self._by_globals.values())

    def entered(self, function: types.FunctionType) -> Callable[..., Any]:
        """The function to run for a user's function that is about to be called."""
        names = function.__globals__
        if _IS_OVERLAY in names or not is_users_own(function.__code__, names):
            return function
        entered: Callable[..., Any] = self.rebuild(function)
        return entered

    def refuse_changes(self) -> None:
        """Stops the trace if the program has changed data outside itself, such as a list."""
        for overlay in self._by_globals.values():
            for name, data, before in overlay.copies:
                if plain(data) != before:
                    stop(
                        f"the program changes {name!r}, which is outside of it; a compiled "
                        "program would not",
                        hint="return the value, or keep it in a variable of the stream; "
                        + INTERPRET,
                        is_late=True,
                    )
        self.refuse_changed_objects()

    def refuse_changed_objects(self) -> None:
        """Stops the trace if the program has changed an object or a class of a module."""
        name = self._watched.changed()
        if name is not None:
            error = refusal(name)
            error.where = str(user_loc() or "")
            raise_stop(error, is_late=True)

    def put_back_all(self) -> None:
        """Undoes all changes since the run began, of objects that the program may reach."""
        self._watched.put_back(None)

    def put_back(self) -> None:
        """Undoes the changes that a run of the trace has made to objects outside the program."""
        ran = [code for overlay in self._by_globals.values() for code in overlay.codes()]
        written = [written_by(code) for code in ran]
        named = [each for each in written if each is not None]
        are_all = len(named) < len(written)
        self._watched.put_back(None if are_all else frozenset().union(*named))

    def is_outside(self, value: Any) -> bool:
        """Whether an object or list is not the program's own."""
        return value in self._watched

    def watch_code(self, code: types.CodeType, names: dict[str, Any]) -> None:
        """Watches what code reads if it runs over its own names, not over an overlay."""
        written = _first_global_write(code)
        if written is not None:
            stop(f"the program writes {written[1]!r}, a variable outside of it")
        self._watched.add_read(code, names)
        for name in names_of(code) & names.keys():
            self._sites.of_tools.reads(names, name)

    def watch(self, name: str, value: Any, is_copied: bool = True) -> None:
        """Watches a value, such as an argument, unless the program gets a copy of it as data."""
        if not is_copied or plain(value) is None or has_lost(value):
            self._watched.add(name, value)


class _Overlay:
    def __init__(
        self,
        original: dict[str, Any],
        is_converting: bool,
        ambient: AmbientOverlay | None,
        sites: Sites,
        watched: Watched,
    ) -> None:
        self.original = original
        self._sites = sites
        self._is_converting = is_converting
        self._ambient = ambient
        self._globals: dict[str, Any] = {}
        self._rebuilt: dict[tuple[int, bool], Any] = {}
        self._keep: list[Any] = []  # ids are unique only among living objects
        self._codes: list[types.CodeType] = []
        self.copies: list[tuple[str, Any, str]] = []  # name, copied data, its text before
        self._copied: dict[int, Any] = {}
        self._watched = watched
        self._globals.update(original)
        held = {"__import__": ambient.imported} if ambient is not None else {}
        self._globals[_IS_OVERLAY] = True
        self._globals["__builtins__"] = vars(builtins) | BUILTINS | OPERATORS | held
        self._met: list[types.FunctionType] = []  # rebuilt functions whose globals are not yet
        for name, value in original.items():
            if (guarded := self._seeing(value)) is not value and not self._is_ours(value):
                self._globals[name] = guarded

    def _seeing(self, value: Any) -> Any:
        """The stand-in for a value that is not a function of this module."""
        held = value if self._ambient is None else self._ambient.holding(value)
        return seeing(value) if held is value else held

    def _is_ours(self, value: Any) -> bool:
        return isinstance(value, types.FunctionType) and value.__globals__ is self.original

    def rebuild(self, function: types.FunctionType, is_counted: bool) -> Any:
        """The function with the overlay's globals; functions that it may call, and those in its
        closure, are rebuilt too."""
        rebuilt = self._rebuild(function, is_counted)
        while self._met:
            code = self._met.pop().__code__
            self._watched.add_imported(code, str(self.original.get("__package__") or ""))
            for name in names_of(code):
                if name in self.original:
                    self._sites.of_tools.reads(self.original, name)
                    value = self._globals[name]
                    if isinstance(self.original[name], types.ModuleType):
                        self._watched.add_module(name, self.original[name], code)
                    ours = value is self.original[name] and self._is_ours(value)
                    self._globals[name] = self._rebuild(value) if ours else self._copy(name, value)
        return rebuilt

    def stands_in(self, names: dict[str, Any]) -> bool:
        return names is self._globals or names is self.original

    def unchanged(self) -> Mapping[str, Any]:
        """The user's own globals without those that the trace has changed."""
        changed = {name for name, data, before in self.copies if plain(data) != before}
        if not changed:
            return self.original
        return {name: value for name, value in self.original.items() if name not in changed}

    def codes(self) -> list[types.CodeType]:
        """The original code of the functions that run over the overlay."""
        return self._codes

    def _rebuild(self, function: types.FunctionType, is_counted: bool = False) -> Any:
        key = id(function), is_counted
        if key in self._rebuilt:
            return self._rebuilt[key]
        writes = _first_outside_write(function.__code__)
        if writes is not None:
            # Refused only when called: a module may have such helpers that no program uses.
            return _refused_outside_write(function, *writes)
        try:
            code = own_code(function)
            pieces = self._sites.places(code.co_filename, are_all=not self._is_converting)
            if self._is_converting or pieces.in_python or is_counted:
                code = converted(code, self.original, replace(pieces, are_counted=is_counted))
        except NoSource as error:
            return _refused(
                function,
                function.__code__.co_firstlineno,
                f"{function.__name__} cannot be traced: {error}",
                "write it into a file and import that; or " + INTERPRET,
            )
        closure = function.__closure__
        cells = None if closure is None else tuple(types.CellType() for _ in closure)
        copy = types.FunctionType(
            code, self._globals, function.__name__, function.__defaults__, cells
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__annotations__, copy.__doc__ = function.__annotations__, function.__doc__
        copy.__dict__ = function.__dict__  # the same: another module may read what this one sets
        self._watched.add(function.__name__, function)
        self._watched.add_defaults(function)
        self._rebuilt[key] = copy
        self._codes.append(function.__code__)
        self._hold(function, key)
        self._met.append(function)
        wrapped = getattr(function, "__wrapped__", None)
        for old, new in zip(closure or (), cells or (), strict=True):
            try:
                value = old.cell_contents
            except ValueError:
                continue
            new.cell_contents = (
                self._rebuild(value, is_counted and value is wrapped)
                if self._is_ours(value)
                else self._seeing(value)
            )
        for name, new in zip(function.__code__.co_freevars, cells or (), strict=True):
            with contextlib.suppress(ValueError):  # an empty cell
                new.cell_contents = self._copy(name, new.cell_contents)
        return copy

    def _hold(self, function: types.FunctionType, key: tuple[int, bool]) -> None:
        """Keeps a function alive, unless it has a closure: such a function, made by the program, is
        freed with the values of its variables when the program drops it.
        """
        if not function.__closure__:
            self._keep.append(function)
            return
        rebuilt = self._rebuilt
        self._keep.append(weakref.ref(function, lambda _: rebuilt.pop(key, None)))

    def _copy(self, name: str, value: Any) -> Any:
        """A copy of plain data, so that the trace's changes are found and spare the original."""
        if type(value) not in _COPIED and not is_namespace(value):
            self._watched.add(name, value)
            return held_back(name, value)
        if id(value) not in self._copied:
            before = plain(value)
            if before is None or len(before) > MAX_COPIED_CHARS or has_lost(value):
                self._watched.add(name, value)
                return value
            self._keep.append(value)
            self._copied[id(value)] = data = copied_data(value)
            self._copied[id(data)] = data
            self.copies.append((name, data, before))
        return self._copied[id(value)]


def _refused_outside_write(function: types.FunctionType, line: int, name: str) -> Any:
    return _refused(
        function,
        line,
        f"the program writes {name!r}, a variable outside of it, which a compiled program cannot",
        "return the value, or keep it in a variable of the stream: s[name] = value",
    )


def _refused(function: types.FunctionType, line: int, message: str, hint: str) -> Any:
    """A function that stops the trace, in place of a function that must not be called."""
    where = f"{os.path.basename(function.__code__.co_filename)}:{line}"

    def call(*args: Any, **kwargs: Any) -> Any:
        raise_stop(TraceError(message, where=where, hint=hint))

    return call


@functools.lru_cache(maxsize=4096)
def _first_outside_write(code: types.CodeType) -> tuple[int, str] | None:
    return next(_outside_writes(code, frozenset(code.co_freevars)), None)


@functools.lru_cache(maxsize=4096)
def _first_global_write(code: types.CodeType) -> tuple[int, str] | None:
    return next(_outside_writes(code, frozenset()), None)


def _outside_writes(code: types.CodeType, outer: frozenset[str]) -> Iterator[tuple[int, str]]:
    """The writes of globals and of variables of enclosing functions: line and name."""
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        if instruction.starts_line:
            position = instruction.positions
            line = (position.lineno if position else None) or line
        is_global = instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
        is_outer = instruction.opname in ("STORE_DEREF", "DELETE_DEREF")
        if is_global or (is_outer and instruction.argval in outer):
            yield line, str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inside = outer - set(constant.co_cellvars) - set(constant.co_varnames)
            yield from _outside_writes(constant, inside)
