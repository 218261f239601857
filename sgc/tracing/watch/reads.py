"""Fingerprints of what a program's Python reads, which the jit compares from call to call.

A fingerprint covers all functions that the program reaches and the data that they read. A read of
something that cannot be digested (an object that may change) is a reason not to compile. Explicit
compiling uses no fingerprints: there the user decides when to compile.
"""

from __future__ import annotations

import dataclasses
import dis
import enum
import functools
import os
import re
import sys
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

from sgc.tracing.watch.guards import code_text, digest, is_program, is_tool, plain

MAX_VALUES = 10_000  # in one fingerprint

_STDLIB = os.path.dirname(os.__file__) + os.sep
_SITE = os.sep + "site-packages" + os.sep
# Types whose values never change; of other types, only plain data is digested.
_IMMUTABLE = (re.Pattern, range, complex, type(...), type(NotImplemented), os.PathLike)
# The placeholder in the `__init__` of a dataclass for a default that is made for each object.
_NO_DEFAULT = getattr(dataclasses, "_HAS_DEFAULT_FACTORY", object())


def reads_of(function: Any) -> tuple[tuple[str, ...], str]:
    """The fingerprint of a program, and why it is not reliable; the reason is empty if it is."""
    found: list[str] = []
    seen: set[int] = set()
    taken = [kind for each in function.signature.parameters for kind in each.classes]
    queue: deque[tuple[str, Any]] = deque([(function.name, function)])
    queue += [(kind.__name__, kind) for kind in taken]
    while queue:
        name, value = queue.popleft()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if len(seen) > MAX_VALUES:
            return (), f"it reads more than {MAX_VALUES} values"
        told, further = _look(name, value)
        if told is None:
            return (), f"it reads {name!r}, a {type(value).__name__}, whose changes are not seen"
        found.append(f"{name}={told}")
        queue.extend(further)
    return tuple(found), ""


def _look(name: str, value: Any) -> tuple[str | None, list[tuple[str, Any]]]:
    """A value's part of the fingerprint, None if it has none; and the values to visit next."""
    if is_program(value):
        bound = plain(dict(value.bind_arguments))
        told = None if bound is None else digest(f"{bound} heal={value.heal}")
        return told, [] if told is None else [(name, value.python)]
    if is_tool(value):
        # A tool's reads are not the program's: every run calls the tool. The compiled program calls
        # this object, so another tool with the same text is another value.
        told = f"{id(value)} {value!r} {value.timeout_s} {value.on_error}"
        return digest(told + code_text(value.python.__code__)), []
    if isinstance(value, types.FunctionType):
        return _look_at_function(name, value)
    if isinstance(value, types.ModuleType):
        return "module", []  # `_names_read` visits the names that are read of a user's module
    if isinstance(value, type):
        is_ours = _is_users(sys.modules.get(value.__module__))
        return "class", list(_members(name, value)) if is_ours else []
    if isinstance(value, types.BuiltinFunctionType):
        # A method of a class, such as the `tuple.__new__` of a named tuple, has no state either.
        is_free = value.__self__ is None or isinstance(value.__self__, (types.ModuleType, type))
        return ("builtin", []) if is_free else (None, [])
    if isinstance(value, enum.Enum):
        return digest(f"{type(value).__qualname__}.{value.name}"), []
    if (
        value is _NO_DEFAULT
        or isinstance(value, _IMMUTABLE)
        or type(value).__module__.startswith(("sgc.", "typing"))
    ):
        return digest(repr(value)), []
    text = plain(value)
    return (None if text is None else digest(text)), []


def _look_at_function(
    name: str, python: types.FunctionType
) -> tuple[str | None, list[tuple[str, Any]]]:
    module = sys.modules.get(python.__module__ or "")
    if module is not None and not _is_users(module):
        return "library", []
    defaults = plain((python.__defaults__, python.__kwdefaults__))
    further = [(f"{name}.default", each) for each in python.__defaults__ or ()]
    further += [(f"{name}.{key}", each) for key, each in (python.__kwdefaults__ or {}).items()]
    further += [(f"{name}.{key}", each) for key, each in vars(python).items()]
    further += _names_read(python)
    return digest(code_text(python.__code__) + (defaults or "")), further


def _names_read(python: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """The globals and closure values that a function reads, and the names it uses of modules."""
    read, named = _names(python.__code__)
    for name in read:
        if name in python.__globals__:
            value = python.__globals__[name]
            yield name, value
            if isinstance(value, types.ModuleType) and _is_users(value):
                inside = vars(value)
                yield from ((f"{name}.{n}", inside[n]) for n in named if n in inside)
    for name, cell in zip(python.__code__.co_freevars, python.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue


@functools.lru_cache(maxsize=4096)
def _names(code: types.CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names read as globals, and all names used, in a function and functions nested in it."""
    read, named = set(), set(code.co_names)
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            read.add(str(instruction.argval))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner_read, inner_named = _names(constant)
            read.update(inner_read)
            named.update(inner_named)
    return tuple(sorted(read)), tuple(sorted(named))


def _members(name: str, class_: type) -> Iterator[tuple[str, Any]]:
    """A class's functions and plain attributes."""
    for key, value in vars(class_).items():
        inner = getattr(value, "__func__", value)  # of a static or class method
        if isinstance(inner, types.FunctionType) or (
            not key.startswith("_") and plain(inner) is not None
        ):
            yield f"{name}.{key}", inner


def _is_users(module: types.ModuleType | None) -> bool:
    """Whether a module is the user's own: not Python's, not an installed package, not this one."""
    if module is None:
        return True
    if module.__name__.partition(".")[0] in ("sgc", "sglang"):
        return False
    if module.__name__.partition(".")[0] in sys.stdlib_module_names:
        return module.__name__ == "__main__"
    file = getattr(module, "__file__", None)
    return file is None or not (file.startswith(_STDLIB) or _SITE in file)
