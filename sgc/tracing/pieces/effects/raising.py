"""Which errors of the program code may raise, by the names that the code may reach. For an error
that it cannot raise, no path to a handler needs to be traced.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from sgc.ir.code import parse_code
from sgc.tracing.kinds.members import is_enumeration
from sgc.tracing.pieces.models import is_model
from sgc.tracing.pieces.text.classes import UserClass

Classes = Mapping[str, UserClass]
_ANY = "raise "  # among names: code raises a value that it may not have made
_BY_NAME = frozenset({"attrgetter", "getattr", "methodcaller"})  # they may reach any method
_LATER = (ast.Lambda, ast.GeneratorExp)


@dataclass(slots=True)
class Raises:
    """What a trace knows of its code. functions: the names in functions, by the functions' names;
    later: the names in what live data may hold and other code may run; unraised: what was decided:
    code, and an error that it cannot raise.
    """

    functions: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    later: set[str] = field(default_factory=set)
    unraised: set[tuple[str, type]] = field(default_factory=set)

    def __copy__(self) -> Raises:
        functions = defaultdict(set, {name: set(each) for name, each in self.functions.items()})
        return Raises(functions, set(self.later), set(self.unraised))

    def may_raise(self, code: str, error: type, classes: Classes) -> bool:
        """Whether code may raise an error of the program, or one derived from it."""
        decided = code, error
        if decided not in self.unraised and not self._raises(*decided, classes):
            self.unraised.add(decided)
        return decided not in self.unraised

    def note(self, code: str, classes: Classes) -> bool:
        """Notes code of the trace; returns whether a decision does not hold any more."""
        n_before = self._size()
        self.later |= _later(code)
        for name, names in _functions(code):
            self.functions[name] |= names
        return self._size() > n_before and self.is_outdated(classes)

    def is_outdated(self, classes: Classes) -> bool:
        """Whether a decision does not hold with these classes; all are forgotten then."""
        is_one = any(self._raises(*each, classes) for each in self.unraised)
        if is_one:
            self.unraised.clear()
        return is_one

    def _size(self) -> int:
        return len(self.later) + sum(map(len, self.functions.values()))

    def _raises(self, code: str, error: type, classes: Classes) -> bool:
        named = {name for name, each in classes.items() if issubclass(each.kind, error)}
        if not named:  # no code has such a class
            return False
        found = self._reached({*_names(code), *self.later}, classes)
        raised = {name.removeprefix(_ANY) for name in found if name.startswith(_ANY)}
        are_made = all(_is_error(name) or name in classes for name in raised)
        return not (are_made and named.isdisjoint(found) and _BY_NAME.isdisjoint(found))

    def _reached(self, names: set[str], classes: Classes) -> set[str]:
        """Names, with those in the functions and methods that they may call; Python itself calls
        special methods."""
        inside = defaultdict(set, {name: set(each) for name, each in self.functions.items()})
        for name, each in ((name, each) for of in classes.values() for name, each in _methods(of)):
            inside[name] |= each
        found, left = set(names), [*names, ""]
        while left:
            more = inside[left.pop()] - found
            found |= more
            left += more
        return found


@lru_cache(maxsize=1024)
def _methods(of: UserClass) -> tuple[tuple[str, frozenset[str]], ...]:
    """The names in the methods of a class, by the methods' names; "" for those that are called
    without a name."""
    functions = [each for each in of.node.body if isinstance(each, ast.FunctionDef)]
    is_called = is_model(of.kind) or is_enumeration(of.kind)
    return tuple(
        ("" if is_called or each.name.startswith("__") else each.name, frozenset(_in([each])))
        for each in functions
    )


@lru_cache(maxsize=4096)
def _names(code: str) -> frozenset[str]:
    """The names in code outside of its classes and functions but the entry."""
    parsed = parse_code(code)
    others = [each for each in parsed.body if not isinstance(each, (ast.ClassDef, ast.FunctionDef))]
    return frozenset(_in([*others, parsed.entry]))


@lru_cache(maxsize=4096)
def _functions(code: str) -> tuple[tuple[str, frozenset[str]], ...]:
    parsed = parse_code(code)
    own = (each for each in parsed.functions if each is not parsed.entry)
    return tuple((each.name, frozenset(_in([each]))) for each in own)


@lru_cache(maxsize=4096)
def _later(code: str) -> frozenset[str]:
    """The names in parts of code that may run after it: functions and methods that are values,
    lambdas, and what makes iterators."""
    nodes = [node for each in parse_code(code).body for node in ast.walk(each)]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    values = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called}
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    later: list[ast.AST] = [node for node in nodes if isinstance(node, _LATER)]
    later += (each for each in functions if each.name in values or _is_generator(each))
    later += (node for node in nodes if isinstance(node, ast.Attribute) and id(node) not in called)
    return frozenset(_in(later))


def _is_generator(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in ast.walk(function))


def _in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in (inner for each in nodes for inner in ast.walk(each)):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.MatchClass):
            yield from node.kwd_attrs
        elif isinstance(node, ast.Raise) and node.exc is not None:
            made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            yield _ANY + getattr(made, "id", "")


def _is_error(name: str) -> bool:
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)
