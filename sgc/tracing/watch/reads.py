"""Fingerprints of what a program's Python reads, which the jit compares from call to call.

A fingerprint covers all functions that the program reaches and the data that they read: globals,
closures, defaults, the members of classes and of the modules that they name. It has a part for each
name, so that a name which means another of two equal values is a change. A read of something that
cannot be digested (an object that may change) is a reason not to compile. Explicit compiling uses
no fingerprints: there the user decides when to compile.
"""

from __future__ import annotations

import abc
import builtins
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import importlib.util
import inspect
import logging
import os
import re
import sys
import types
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sgc.tracing.watch.guards import code_text, digest, is_program, is_tool, plain
from sgc.tracing.watch.names import Names, names_in

MAX_VALUES = 10_000  # in one fingerprint
MAX_CHARS = 10_000  # of a text that is digested
MAX_ITEMS = 20_000  # of data, with those inside of it
MAX_OF_LIBRARY = 100  # items of a library's data

_STDLIB = os.path.dirname(os.__file__) + os.sep
_SITE = os.sep + "site-packages" + os.sep
# Types whose values never change, and whose texts tell them.
_IMMUTABLE = frozenset({
    range, complex, type(...), type(NotImplemented), datetime.date, datetime.datetime,
    datetime.time, datetime.timedelta, datetime.timezone, decimal.Decimal, fractions.Fraction,
    uuid.UUID, types.GenericAlias, types.UnionType, inspect.Signature,
})  # fmt: skip
_CONTAINERS = (list, tuple, dict, set, frozenset)
_SCALARS = (str, int, float, bool, bytes, type(None))
_CONSTANTS = (*_SCALARS, tuple, frozenset)
# What classes of C and slots are made of: it has no state.
_MACHINERY = (types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType,
              types.MethodDescriptorType, types.ClassMethodDescriptorType,
              type(vars(collections.namedtuple("_One", "one"))["one"]))  # fmt: skip
# Classes without state of their own, from which a user's class may derive.
_STATELESS = ("abc.ABC", "builtins.object", "typing.Generic", "typing.Protocol")
_CACHED = type(functools.lru_cache(len))
_OF_PYTHON = ("builtins", "io", "_io", "_sitebuiltins")
_DECORATED = ("__wrapped__", "registry")  # what library functions make of the user's
# The placeholder in the `__init__` of a dataclass for a default that is made for each object.
_NO_DEFAULT = getattr(dataclasses, "_HAS_DEFAULT_FACTORY", object())

Named = tuple[str, Any]


class _Seen(NamedTuple):
    """What a name that means a value already seen tells. The value is held, as its id must not be
    another's."""

    told: str
    value: Any


class _Holder(NamedTuple):
    """A module or class, whose members are visited if a function uses their names."""

    name: str
    members: Mapping[str, Any]
    visited: set[str]
    is_librarys: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class _Same:
    """Stands for an object of a library, which is taken to be as it was while it is the same."""

    kind: str
    id: int


class Unseen(Exception):
    """Changes of a value would not be seen."""


def reads_of(function: Any) -> tuple[tuple[str, ...], str]:
    """The fingerprint of a program, and why it is not reliable; the reason is empty if it is."""
    try:
        return _Walk(function).found(), ""
    except Unseen as error:
        return (), str(error)


class _Walk:
    """Visits values breadth first, from the program's function and the classes it takes."""

    def __init__(self, function: Any) -> None:
        self._found: list[str] = []
        self._seen: dict[int, _Seen] = {}
        self._used: set[str] = set()
        self._is_dynamic = False
        self._holders: list[_Holder] = []
        taken = [kind for each in function.signature.parameters for kind in each.classes]
        self._queue = collections.deque[Named]([(function.name, function)])
        self._queue += [(kind.__name__, kind) for kind in taken]

    def found(self) -> tuple[str, ...]:
        while self._queue:
            while self._queue:
                self._visit(*self._queue.popleft())
            for holder in [*self._holders]:
                self._queue.extend(self._members_of(holder))
        if "Decimal" in self._used:
            self._found.append(f"decimal={decimal.getcontext()}")
        if "__subclasses__" in self._used:
            raise Unseen("it reads '__subclasses__', whose changes are not seen")
        return tuple(self._found)

    def _visit(self, name: str, value: Any) -> None:
        if (seen := self._seen.get(id(value))) is None:
            if len(self._seen) >= MAX_VALUES:
                raise Unseen(f"it reads more than {MAX_VALUES} values")
            told = self._look(name, value)
            # Equal constants may be one object or two; of others, it matters which one is meant.
            again = told if type(value) in _CONSTANTS else f"#{len(self._seen)}"
            self._seen[id(value)] = _Seen(again, value)
        else:
            told = seen.told
        self._found.append(f"{name}={told}")

    def _members_of(self, holder: _Holder) -> Iterator[Named]:
        """The members whose names are used and that were not visited before."""
        wanted = (self._used | {"__getattr__"}) & holder.members.keys()
        if self._is_dynamic:
            wanted |= {name for name in holder.members if not _is_machinery(name)}
        for name in sorted(wanted - holder.visited):
            holder.visited.add(name)
            if not holder.is_librarys or _is_put_in(holder.members[name]):
                yield f"{holder.name}.{name}", holder.members[name]

    def _look(self, name: str, value: Any) -> str:
        """A value's part of the fingerprint; what else it leads to is visited later. Raises
        Unseen."""
        if type(value) in (str, bytes) and len(value) > MAX_CHARS:
            return f"{type(value).__name__} {len(value)} {hash(value)}"  # which Python keeps
        if type(value) in _CONTAINERS and _is_large(value):
            raise Unseen(f"it reads {name!r}, too much data to compare at each call")
        if (text := plain(value, keeps_order=True)) is not None:
            return digest(text)
        if is_program(value):
            return self._program(name, value)
        if is_tool(value):
            # A tool's reads are not the program's: every run calls the tool. The compiled program
            # calls this object, so another tool with the same text is another value.
            told = f"{id(value)} {value!r} {value.timeout_s} {value.on_error}"
            return digest(told + code_text(value.python.__code__))
        if isinstance(value, types.FunctionType):
            return self._function(name, value)
        if isinstance(value, types.ModuleType):
            if _is_users(value):  # of others, the names are visited that a function uses
                self._holders.append(_Holder(name, vars(value), set()))
            return f"module {value.__name__}"
        if isinstance(value, type):
            return self._class(name, value)
        if isinstance(value, enum.Enum):
            of_program = {k: v for k, v in vars(value).items() if not _is_machinery(k)}
            self._queue += [(f"{name}.{k}", v) for k, v in of_program.items()]
            self._queue += [(f"{name}.value", value.value), (f"{name}.class", type(value))]
            return f"{type(value).__qualname__}.{value.name}"
        if isinstance(value, logging.Logger):  # which a program calls when it runs
            return f"logger {value.name}"
        if isinstance(value, re.Pattern):
            return digest(f"{value.pattern!r} {value.flags}")
        room = type(value).__module__.partition(".")[0]
        is_fixed = value is _NO_DEFAULT or type(value) in _IMMUTABLE
        if is_fixed or room in ("pathlib", "sgc", "typing"):
            return digest(repr(value))
        return self._wrapped(name, value)

    def _program(self, name: str, value: Any) -> str:
        bound = plain(dict(value.bind_arguments))
        if bound is None:
            raise _unseen(name, value)
        self._queue.append((name, value.python))
        settings = value.heal, value.max_turns, value.num_api_spec_tokens, value.allow_ambient
        return digest(f"{bound} {settings}")

    def _function(self, name: str, python: types.FunctionType) -> str:
        # By its names, as `functools.wraps` gives it the module of the function that it wraps.
        module = sys.modules.get(python.__globals__.get("__name__", ""))
        if module is not None and not _is_users(module):
            is_closure = f" {id(python)}" if python.__closure__ else ""
            own = vars(python)  # of a decorator's
            self._queue += [(f"{name}.{key}", own[key]) for key in _DECORATED if key in own]
            return f"library {python.__module__}.{python.__qualname__}{is_closure}"
        further = [(f"{name}.default", each) for each in python.__defaults__ or ()]
        further += [(f"{name}.{key}", each) for key, each in (python.__kwdefaults__ or {}).items()]
        further += [(f"{name}.{key}", each) for key, each in vars(python).items()]
        self._queue += further
        names = names_in(python.__code__)
        self._used |= names.used
        self._is_dynamic = self._is_dynamic or names.is_dynamic
        self._queue += _names_read(python, names)
        code = python.__code__
        told = f"{_digest_of(code)} {python.__name__} {python.__qualname__}"
        if python.__doc__ not in code.co_consts[:1]:
            told += f" {python.__doc__}"
        for key, each in python.__annotations__.items():
            told += f" {key}: {each if isinstance(each, str) else id(each)}"
        return told

    def _class(self, name: str, kind: type) -> str:
        if not _is_users(_module_of(kind)):
            self._holders.append(_Holder(name, vars(kind), set(), is_librarys=True))
            return f"class {kind.__module__}.{kind.__qualname__}"
        self._queue += [(f"{name}.{base.__name__}", base) for base in kind.__mro__[1:]]
        self._queue.append((f"{name}.metaclass", type(kind)))
        members = dict(vars(kind))
        if issubclass(kind, enum.Enum):
            members |= kind.__members__
            self._queue += [(f"{name}.{key}", each) for key, each in kind.__members__.items()]
        self._holders.append(_Holder(name, members, set()))
        # Methods may be called without their name, as `__init__` and validators are.
        called = [(f"{name}.{key}", each) for key, each in members.items() if _is_code(each)]
        self._queue += called
        registered = abc.get_cache_token() if isinstance(kind, abc.ABCMeta) else ""
        return f"class {kind.__qualname__} {id(kind)} {registered}"

    def _wrapped(self, name: str, value: Any) -> str:
        """What is made of other values: containers, descriptors, partials, methods, objects."""
        kind = type(value)
        if kind is types.MappingProxyType:
            self._queue.append((f"{name}.items", dict(value)))
            return kind.__name__
        if kind in _CONTAINERS:
            items = [*value.items()] if kind is dict else [*value]
            self._queue += [(f"{name}[{n}]", each) for n, each in enumerate(items)]
            return f"{kind.__name__} of {len(items)}"
        if isinstance(value, types.BuiltinFunctionType):
            # A method of a class, such as `tuple.__new__` of a named tuple, has no state either.
            if not isinstance(value.__self__, (types.ModuleType, type, type(None))):
                self._queue.append((f"{name}.self", value.__self__))
            if value is warnings.warn:
                errors = [each for each in warnings.filters if each[0] == "error"]
                self._queue.append((f"{name}.errors", errors))
            return f"builtin {value.__module__}.{value.__qualname__}"
        if isinstance(value, _MACHINERY):
            return f"{kind.__name__} {getattr(value, '__qualname__', '')}"
        if (parts := _parts(value)) is None:
            raise _unseen(name, value)
        self._queue += [(f"{name}.{key}", part) for key, part in parts]
        return kind.__qualname__


@functools.lru_cache(maxsize=4096)
def _digest_of(code: types.CodeType) -> str:
    return digest(code_text(code))


def _unseen(name: str, value: Any) -> Unseen:
    return Unseen(f"it reads {name!r}, a {type(value).__name__}, whose changes are not seen")


def _parts(value: Any) -> list[Named] | None:
    """What a value is made of, if nothing else is in it; else None."""
    kind = type(value)
    if isinstance(value, (staticmethod, classmethod, types.MethodType)):
        owner = [] if not isinstance(value, types.MethodType) else [("self", value.__self__)]
        return [("function", value.__func__), *owner]
    if kind is property:
        return [("get", value.fget), ("set", value.fset), ("delete", value.fdel)]
    if kind is functools.cached_property:
        return [("get", value.func)]
    if kind in (functools.partial, functools.partialmethod):
        return [("function", value.func), ("args", value.args), ("keywords", value.keywords)]
    if kind is _CACHED:
        return [("function", value.__wrapped__)]
    if kind is object:  # stands for nothing
        return [("self", _Same("object", id(value)))]
    if isinstance(value, tuple) and hasattr(kind, "_fields") and _is_users(_module_of(kind)):
        return [("class", kind), *((f"{n}", each) for n, each in enumerate(value))]
    if _is_users(_module_of(kind)) and all(map(_is_stateless, kind.__mro__)):
        return [("class", kind), *_attributes(value)]
    return None


def _is_code(member: Any) -> bool:
    """Whether a member of a class is a method, a property or the like."""
    inner = getattr(member, "__func__", getattr(member, "wrapped", member))  # of pydantic's
    return isinstance(inner, (types.FunctionType, property)) or type(inner) in (
        functools.cached_property, functools.partialmethod, _CACHED
    )  # fmt: skip


def _is_large(data: Any) -> bool:
    n, waiting = 0, [data]
    while waiting:
        each = waiting.pop()
        n += len(each)
        if n > MAX_ITEMS:
            return True
        inside = each.values() if type(each) is dict else each
        waiting.extend(item for item in inside if type(item) in _CONTAINERS)
    return False


def _is_put_in(member: Any) -> bool:
    """Whether a member of a library's class is not the library's, as in a test."""
    is_users = isinstance(member, types.FunctionType) and _is_users(
        sys.modules.get(member.__globals__.get("__name__", ""))
    )
    return is_users or type(member).__module__ == "unittest.mock"


def _is_stateless(kind: type) -> bool:
    """Whether objects have nothing of a class but attributes."""
    is_users = _is_users(_module_of(kind))
    return is_users or f"{kind.__module__}.{kind.__qualname__}" in _STATELESS


def _attributes(value: Any) -> Iterator[Named]:
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        for name, member in vars(kind).items():
            if isinstance(member, types.MemberDescriptorType):
                with_it = member.__get__(value) if hasattr(value, name) else None
                yield name, with_it


def _names_read(python: types.FunctionType, names: Names) -> Iterable[Named]:
    """The globals, closure values and imported modules that a function reads, and the names that it
    uses of modules that are not the user's."""
    inside = python.__globals__
    for name in sorted(names.read & inside.keys()):
        yield from _with_names(name, inside[name], names)
    for name in sorted(names.read & vars(builtins).keys() - inside.keys()):
        value = vars(builtins)[name]
        if getattr(value, "__module__", "") not in _OF_PYTHON:  # not Python's own
            yield f"builtins.{name}", value
    if not names.used.isdisjoint(("import_module", "__import__")):
        for name in sorted(names.used & sys.modules.keys()):
            yield from _with_names(name, sys.modules[name], names)
    for module, level in sorted(names.imports):
        for name in _whole(module, level, inside):
            if name in sys.modules:
                yield from _with_names(name, sys.modules[name], names)
    for name, cell in zip(python.__code__.co_freevars, python.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue


def _with_names(name: str, value: Any, names: Names) -> Iterator[Named]:
    yield name, value
    if isinstance(value, types.ModuleType) and not _is_users(value):
        members = vars(value)
        for each in sorted(names.used & members.keys()):
            yield f"{name}.{each}", _member_of_library(members[each])


def _member_of_library(value: Any) -> Any:
    """What is digested of it. Tests put functions of their own in place of a library's."""
    is_small = type(value) in _CONTAINERS and len(value) <= MAX_OF_LIBRARY
    if isinstance(value, (types.FunctionType, types.ModuleType, type)) or value is warnings.warn:
        return value
    if plain(value) is not None if is_small else type(value) in _SCALARS:
        return value
    return _Same(type(value).__qualname__, id(value))


def _whole(module: str, level: int, inside: dict[str, Any]) -> list[str]:
    """The names of a module that is imported, and of those that it lies in."""
    if level:
        package = inside.get("__package__") or ""
        module = importlib.util.resolve_name("." * level + module, package) if package else module
    parts = module.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts) + 1)]


def _module_of(kind: type) -> types.ModuleType | None:
    return sys.modules.get(kind.__module__)


def _is_machinery(name: str) -> bool:
    """Whether Python or a library has put a member into a class."""
    return name == "_abc_impl" or (name.startswith("_") and name.endswith("_"))


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
