"""The state of modules that a program reads and its tools change: a compiled program would go on
with what it read while it was traced.

What a tool changes is read from its source, and from that of the user's functions and methods that
it calls. A tool without a source changes nothing that a program could read.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from sgc.core.places import is_users_own
from sgc.core.stops import INTERPRET, stop
from sgc.tracing.code.trees import Function, source_of
from sgc.tracing.pieces.effects.changes import changed_roots, made_inside, may_change, root_of
from sgc.tracing.pieces.names import parameters

Key = int | tuple[int, str]
"""An object by its id, or a variable of a module by the id of the module's names, and its name."""

_MISSING = object()
_FIXED = (str, int, float, bool, bytes, type(None), ModuleType, FunctionType)
_PYTHONS = frozenset({*dir(str), *dir(list), *dir(dict), *dir(set), *dir(tuple)})


@dataclass(slots=True)
class OfTools:
    """read: the variables that the program reads; changed: those that tools change, and the tools'
    names."""

    read: dict[Key, str] = field(default_factory=dict)
    changed: dict[Key, str] = field(default_factory=dict)
    _met: dict[int, tuple[object, frozenset[Key]]] = field(default_factory=dict)

    def reads(self, names: Mapping[str, Any], name: str) -> None:
        """Stops the trace if a tool that was called before changes a variable."""
        for key in _keys(names, name):
            if key not in self.read:  # else the call of the tool is refused
                self.read[key] = name
                if key in self.changed:
                    _refuse(self.changed[key], name)

    def calls(self, tool: str, python: Callable[..., Any]) -> None:
        """Stops the trace if a tool changes a variable that the program reads."""
        if id(python) not in self._met:
            self._met[id(python)] = python, frozenset(_Changes().of(python))
        changed = self._met[id(python)][1]
        self.changed.update(dict.fromkeys(changed, tool))
        names = {self.read[key] for key in changed & self.read.keys()}
        if names:
            _refuse(tool, min(names))


def _refuse(tool: str, name: str) -> None:
    stop(
        f"the program reads {name!r}, which the tool {tool!r} may change; a compiled program would "
        "go on with what it is now",
        hint="read it in a tool, or let the tool return what the program needs; or " + INTERPRET,
    )


def _keys(names: Mapping[str, Any], name: str) -> Iterator[Key]:
    yield id(names), name
    value = names.get(name, _MISSING)
    if value is not _MISSING and not isinstance(value, _FIXED):
        yield id(value)


class _Changes:
    """Finds what functions change outside of themselves."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def of(self, python: Callable[..., Any]) -> Iterator[Key]:
        if isinstance(python, MethodType):
            if _may_change_self(python, type(python.__self__)):
                yield id(python.__self__)
            python = python.__func__
        inner = getattr(python, "__wrapped__", None)
        if callable(inner):
            yield from self.of(inner)
        if isinstance(python, FunctionType) and id(python) not in self._seen:
            self._seen.add(id(python))
            if is_users_own(python.__code__, python.__globals__):
                yield from self._of_function(python)

    def _of_function(self, function: FunctionType) -> Iterator[Key]:
        names = function.__globals__
        yield from ((id(names), name) for name in _set_by(function.__code__))
        node = source_of(function)
        if node is None:
            return
        outer = _Outer(function, node)
        for name in outer.changed():
            yield from outer.keys(name)
        for name in sorted({each.id for each in ast.walk(node) if isinstance(each, ast.Name)}):
            value = outer.value(name)
            if isinstance(value, FunctionType):
                yield from self.of(value)


class _Outer:
    """The variables outside of a function that its body reads."""

    def __init__(self, function: FunctionType, node: Function) -> None:
        self._names, self._node = function.__globals__, node
        code = function.__code__
        self._cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self._given = parameters(node.args)
        self._own = {*code.co_varnames, *code.co_cellvars} - self._cells.keys()

    def value(self, name: str) -> Any:
        """The value of a variable outside; a value of no kind if it is the function's own."""
        if name in self._cells:
            try:
                return self._cells[name].cell_contents
            except ValueError:
                return _MISSING
        return _MISSING if name in self._own else self._names.get(name, _MISSING)

    def keys(self, name: str) -> Iterator[Key]:
        value = self.value(name)
        if name in self._cells and value is not _MISSING:
            yield id(value)
        elif value is not _MISSING:
            yield from _keys(self._names, name)

    def changed(self) -> set[str]:
        """The variables outside whose values the function may change."""
        made = made_inside(self._node)
        roots = {*changed_roots(self._node, made), *self._by_calls()} - {None}
        found: set[str] = set()
        for root in roots:
            assert root is not None
            if root in self._own and root not in made and root not in self._given:
                found |= self._all()  # it may stand for any of them
            elif self._is_changeable(root):
                found.add(root)
        return found

    def _all(self) -> set[str]:
        names = {each.id for each in ast.walk(self._node) if isinstance(each, ast.Name)}
        return {name for name in names if self._is_changeable(name)}

    def _is_changeable(self, name: str) -> bool:
        value = self.value(name)
        return value is not _MISSING and not isinstance(value, _FIXED)

    def _by_calls(self) -> Iterator[str | None]:
        """The variables that are changed by methods of the user's, and by functions given them."""
        for node in ast.walk(self._node):
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Attribute):
                root = root_of(node.func.value)
                if root is not None and self._changes_object(node.func, self.value(root)):
                    yield root
                continue
            called = self.value(getattr(node.func, "id", ""))
            source = source_of(called) if isinstance(called, FunctionType) else None
            if source is not None and may_change(source):
                given = (*node.args, *(each.value for each in node.keywords))
                yield from (each.id for each in given if isinstance(each, ast.Name))

    def _changes_object(self, called: ast.Attribute, value: Any) -> bool:
        """Whether a method that is not one of Python's containers' may change its object."""
        if value is _MISSING or isinstance(value, _FIXED) or called.attr in _PYTHONS:
            return False
        method = getattr(type(value), called.attr, None) or getattr(value, called.attr, None)
        if isinstance(called.value, ast.Name) and _users(method) is not None:
            return _may_change_self(method, type(value))
        return _is_users(type(value))


def _is_users(kind: type) -> bool:
    made = vars(kind).get("__init__")
    return isinstance(made, FunctionType) and is_users_own(made.__code__, made.__globals__)


def _users(method: Any) -> FunctionType | None:
    """The function of a method that is written in the user's code."""
    found = getattr(method, "__func__", method)
    is_users = isinstance(found, FunctionType) and is_users_own(found.__code__, found.__globals__)
    return found if is_users else None


def _may_change_self(method: Any, kind: type, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a method, or one of the same object that it calls, may change anything."""
    function = _users(method)
    source = None if function is None else source_of(function)
    if source is None or may_change(source):
        return True
    own = _own_calls(source) - seen
    seen |= own
    return any(_may_change_self(getattr(kind, each, None), kind, seen) for each in own)


def _own_calls(node: Function) -> set[str]:
    """The methods of its object that a method calls."""
    given = {each.arg for each in (*node.args.posonlyargs, *node.args.args)[:1]}
    called = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return {
        each.attr for each in called
        if isinstance(each, ast.Attribute) and getattr(each.value, "id", "") in given
    }  # fmt: skip


def _set_by(code: CodeType) -> Iterator[str]:
    """The module's variables that a function, or one nested in it, sets."""
    for each in dis.get_instructions(code):
        if each.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            yield each.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _set_by(constant)
