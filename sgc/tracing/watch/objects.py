"""Objects, classes and functions of the user's modules, which a traced program must not change.

Plain data is copied for a trace. Objects are not copied, since the program may ask for their
identity, nor are lists, dicts and sets that hold objects: they are compared when a run of the trace
ends, and the trace's changes are undone.
"""

from __future__ import annotations

import dis
import sys
import warnings
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from types import CodeType, FunctionType, ModuleType
from typing import Any

from sgc.core.places import is_users_module
from sgc.core.stops import INTERPRET
from sgc.errors import SgcWarning, TraceError
from sgc.tracing.watch.guards import names_of as names_in
from sgc.tracing.watch.hidden import is_large
from sgc.tracing.watch.states import ModuleNames, State, defaults_of, parts, states, written_by

MAX_FOUND = 200_000  # objects that are searched for in one value
MAX_KEPT = 1000  # objects that each run of a trace compares


@dataclass(slots=True)
class Found:
    """The objects that a value from outside is or holds. compared: the objects that each run of a
    trace compares; rest: the states, before the trace, of the other objects, which are compared
    only at the end of the trace."""

    value: Any
    objects: list[Any]
    compared: list[Any]
    rest: list[State] = field(default_factory=list)


def found_in(name: str, value: Any) -> Found:
    """The changeable objects in a value from outside."""
    found: dict[int, Any] = {}
    left = [value]
    while left:
        each = left.pop()
        if id(each) in found or (held := parts(each)) is None:
            continue
        if len(found) == MAX_FOUND:
            warnings.warn(
                f"{name!r} holds more than {MAX_FOUND} objects: if the program changes others of "
                "them, nobody will notice",
                SgcWarning,
                stacklevel=2,
            )
            break
        found[id(each)] = each
        left += held
    objects = list(found.values())
    compared = [each for each in objects[:MAX_KEPT] if not is_large(each)]
    seen = set(map(id, compared))
    others = [each for each in objects if id(each) not in seen]
    rest = [state for each in others for state in states(name, each)]
    return Found(value, objects, compared, rest)


def refuse_changed_rest(known: dict[int, Found]) -> None:
    """Raises TraceError if a trace has changed objects that its runs do not compare."""
    every = [state for each in known.values() for state in each.rest]
    changed = [state for state in every if state.is_changed]
    for state in changed:
        state.put_back(None)
    if changed:
        raise refusal(changed[0].name)


class ChangedOutside(TraceError):
    """A program changes an object outside of it: the change cannot always be undone, and another
    trace might not see it."""


def refusal(name: str) -> ChangedOutside:
    """The error of a program that changes a variable's object."""
    return ChangedOutside(
        f"the program changes {name!r}, an object outside of it; a compiled program would not",
        hint="make the object in the program, or keep the value in a variable of the stream; "
        + INTERPRET,
    )


class Watched:
    """The objects from outside that a run of the trace may reach. known: the objects in each value
    from outside, by the value's id, for all runs of a trace."""

    def __init__(self, known: dict[int, Found]) -> None:
        self._known = known
        self._kept: dict[int, list[State]] = {}  # by the id of the value that holds the objects
        self._ids: set[int] = set()
        self._read: set[int] = set()  # ids of code
        self._modules: set[tuple[int, int]] = set()  # ids of modules and of code that reads them

    def __contains__(self, value: object) -> bool:
        return id(value) in self._ids

    def add(self, name: str, value: Any) -> None:
        """Keeps the states of the objects and lists in a value before the run."""
        if id(value) in self._kept:
            return
        if id(value) not in self._known:
            self._known[id(value)] = found_in(name, value)
        found = self._known[id(value)]
        self._ids.update(map(id, found.objects))
        self._kept[id(value)] = [state for each in found.compared for state in states(name, each)]

    def add_defaults(self, function: FunctionType) -> None:
        """Keeps the defaults of a function's parameters, which all of its calls share."""
        for name, value in defaults_of(function).items():
            self.add(f"{function.__name__}({name}=...)", value)

    def add_read(self, code: CodeType, names: dict[str, Any]) -> None:
        """Keeps the states of what a function reads, if it runs over its own globals."""
        if id(code) in self._read:
            return
        self._read.add(id(code))
        for name in names_in(code) & names.keys():
            value = names[name]
            if isinstance(value, ModuleType):
                self.add_module(name, value, code)
            else:
                self.add(name, value)

    def add_module(self, name: str, module: ModuleType, code: CodeType) -> None:
        """Keeps the state of a module that a function reads: the module's names, and the values of
        those names that the function uses."""
        if (id(module), id(code)) in self._modules:
            return
        self._modules.add((id(module), id(code)))
        own, kept = vars(module), self._kept.setdefault(id(module), [])
        if not _is_own(module):
            kept.append(ModuleNames(name, module, written_by(code)))
            return
        if not kept:
            kept.append(ModuleNames(name, module, None))
        for each in names_in(code) & own.keys():
            value = own[each]
            if isinstance(value, ModuleType):
                self.add_module(f"{name}.{each}", value, code)
            else:
                self.add(f"{name}.{each}", value)

    def add_imported(self, code: CodeType, package: str) -> None:
        """Keeps the states of the modules that a function imports when it runs."""
        names = {*imported_by(code)}
        if names:  # a relative import may name submodules of the package
            names |= {f"{package}.{name}" for name in (*names, *names_in(code))}
        for name in sorted(names & sys.modules.keys()):
            self.add_module(name, sys.modules[name], code)

    def changed(self) -> str | None:
        """The name of a variable whose value has changed."""
        every = chain.from_iterable(self._kept.values())
        return next((each.name for each in every if each.is_changed), None)

    def put_back(self, written: frozenset[str] | None) -> None:
        for each in chain.from_iterable(self._kept.values()):
            each.put_back(written)


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
