"""Reads one object by its kind: collections, functions, errors, streams, objects of classes."""

from __future__ import annotations

import contextlib
import types as pytypes
from abc import abstractmethod
from collections import Counter, OrderedDict, defaultdict, deque
from functools import partial
from typing import TYPE_CHECKING, Any

from sgc.core.places import innermost_user_loc
from sgc.core.symbols import Symbol
from sgc.lang.definition import Definition
from sgc.tracing.code.frames import (
    Opaque,
)
from sgc.tracing.snapshots.objects import (
    contents_of,
    is_constant,
    is_decided,
    is_programs,
    is_pythons,
    names_of,
    order,
)
from sgc.tracing.snapshots.snapshot import Part
from sgc.tracing.snapshots.value_reader import ValueReader
from sgc.tracing.values.tool_failures import TOLD, TracedTold

if TYPE_CHECKING:
    from sgc.lang.state import ProgramState

_DICTS = frozenset({dict, Counter, OrderedDict, defaultdict})


class ObjectReader(ValueReader):
    """Reads what an object holds."""

    @abstractmethod
    def _generator(self, value: pytypes.GeneratorType[Any, Any, Any]) -> None:
        """Reads a generator by the frame that waits in it."""

    def _object(self, value: Any) -> None:
        from sgc.lang.state import ProgramState

        kind = type(value)
        if kind in (list, tuple):
            self._tokens.append((kind, len(value)))
            holder = self._own(value) if kind is list else None
            for n, item in enumerate(value):
                self._value(item, holder, n)
        elif kind in _DICTS:
            self._tokens.append((kind, len(value)))
            self._value(getattr(value, "default_factory", None))
            for key, item in value.items():
                self._key(key)
                self._value(item, self._own(value) if is_constant(key) else None, key)
        elif kind is pytypes.MappingProxyType:
            self._tokens.append(kind)
            self._value({**value})
        elif kind in (set, frozenset):
            self._tokens.append((kind, len(value)))
            for item in sorted(value, key=order) if len(value) > 1 else value:
                self._key(item)
        elif isinstance(value, ProgramState):
            self._state(value)
        elif isinstance(value, Definition):
            self._tokens.append("program")
            self._value(value.python)
            self._value(tuple(value.bind_arguments.items()))
        elif isinstance(value, pytypes.FunctionType):
            self._function(value)
        elif isinstance(value, pytypes.CellType):
            self._cell(value)
        elif isinstance(value, pytypes.BuiltinFunctionType):
            self._builtin(value)
        elif isinstance(value, BaseException):
            self._error(value)
        elif kind is pytypes.GeneratorType:
            self._generator(value)
        elif isinstance(value, pytypes.MethodType):
            self._tokens.append("method")
            self._value(value.__func__)
            self._value(value.__self__)
        elif not self._librarys(value):
            self._instance(value)

    def _own(self, value: Any) -> Any:
        """The object, if other values can be put in its places; None if it is not the program's."""
        return None if self._session.is_outside(value) else value

    def _key(self, key: Any) -> None:
        """Reads a key; raises Opaque for an abstract key, whose hash depends on the path: each path
        has decided which of its options the key is."""
        if is_decided(key):
            raise Opaque
        self._value(key)

    def _librarys(self, value: Any) -> bool:
        """Reads a deque, `partial` or named tuple; returns False for any other object."""
        kind = type(value)
        if kind is deque:
            self._tokens.append((kind, len(value), value.maxlen))
            for n, item in enumerate(value):
                self._value(item, self._own(value), n)
        elif kind is partial:
            self._tokens.append(kind)
            self._value((value.func, value.args, value.keywords))
        elif isinstance(value, tuple):
            self._value(kind)
            self._value(tuple(value))
        else:
            return False
        self._own_attributes(value)
        return True

    def _function(self, value: pytypes.FunctionType) -> None:
        self._tokens.append(("function", value.__code__))
        self._value(value.__defaults__)
        self._value(value.__kwdefaults__)
        self._value(value.__dict__)
        for cell in value.__closure__ or ():
            self._value(cell)

    def _cell(self, cell: pytypes.CellType) -> None:
        self._tokens.append("cell")
        try:
            self._value(cell.cell_contents, cell)
        except ValueError:
            self._tokens.append("empty")

    def _builtin(self, value: pytypes.BuiltinFunctionType) -> None:
        """Reads a function written in C; for a method, also its object."""
        owner = value.__self__
        if owner is None or isinstance(owner, (type, pytypes.ModuleType)):
            self._identity(value)
        else:
            self._tokens.append(("method", value.__name__))
            self._value(owner)

    def _error(self, error: BaseException) -> None:
        """Reads an error: its message, and the line that raised it, which a failed run reports."""
        if isinstance(error, TracedTold):
            told = error.__dict__
            self._tokens.append(("told", type(error).__bases__, told["code"], told["is_live"]))
            self._value(tuple(told[name] for name in TOLD))
            return
        self._tokens.append(("error", str(innermost_user_loc(error))))
        self._identity(type(error))
        self._value(error.args)
        self._value(error.__cause__)
        self._value(tuple(error.__dict__.items()))

    def _instance(self, value: Any) -> None:
        """Reads an object of a class written in Python, by its attributes."""
        kind = type(value)
        if not is_pythons(kind):
            raise Opaque
        self._tokens.append("object")
        self._value(kind)
        holder = self._own(value) if is_programs(kind) else None
        for name in names_of(kind):
            self._attribute(value, name, holder)
        self._own_attributes(value, holder)

    def _own_attributes(self, value: Any, holder: Any = None) -> None:
        # `object`'s own method, because an abstract value refuses unknown attributes.
        with contextlib.suppress(AttributeError):
            for name, item in object.__getattribute__(value, "__dict__").items():
                self._tokens.append(name)
                self._value(item, holder, name)

    def _class(self, kind: type) -> None:
        """Reads a class that the program has made, by its attributes; other classes are fixed."""
        self._seen[id(kind)] = self._number()
        for name, item in contents_of(kind):
            self._tokens.append(name)
            self._value(item, kind, name)

    def _attribute(self, value: Any, name: str, holder: Any) -> None:
        with contextlib.suppress(AttributeError):
            item = object.__getattribute__(value, name)
            self._tokens.append(name)
            self._value(item, holder, name)

    def _state(self, state: ProgramState) -> None:
        """Reads a stream: its state and properties; its abstract variables are kept apart."""
        self.states.append(state)
        self._tokens.append(("stream", state.function_name, tuple(state.roles), state._is_child))
        self._value(state.symbol)
        if state._is_child:
            self._value(state.start)
        elif state in self._session.calling:
            self._start(state.start)
        self._value(state._ret_value)
        held = self._session.held_of(state)
        if held is not None:  # the live object that stands for the stream in data
            self._tokens.append("held")
            self._value(held)
        lone = {}
        for name, value in state._names.items():
            if isinstance(value, Symbol):
                lone[name] = Part(("%",), (value,))
            else:  # it may share objects with other variables
                self._tokens.append(("name", name))
                self._value(value, state._names, name)
        self._names.append(lone)
