"""Values from outside a piece, written as expressions of its module."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import _lru_cache_wrapper, partial
from operator import attrgetter, itemgetter
from types import BuiltinFunctionType, FunctionType
from typing import Any

from sgc.core.markers import has_marker
from sgc.runtime.executor.code.set_order import merged
from sgc.runtime.executor.code.set_table import as_added, is_same
from sgc.tracing.code.trees import source_of
from sgc.tracing.kinds.members import is_member
from sgc.tracing.kinds.records import form_of, is_record, parts_of
from sgc.tracing.kinds.sets import order_is_fixed
from sgc.tracing.pieces.names import parameters
from sgc.tracing.pieces.text.library import pythons

# Types whose objects cannot be changed.
FIXED = (
    str, int, float, bool, type(None), bytes, Decimal, Fraction, date, time, timedelta, re.Pattern,
    attrgetter, itemgetter,
)  # fmt: skip
FACTORIES = {list: "list", int: "int", dict: "dict", set: "set", str: "str", float: "float"}
_HEAP_TYPE = 1 << 9
_CALLED = (FunctionType, BuiltinFunctionType, type)
_NUMBERS = (Decimal, Fraction)
_GETTERS: tuple[type, ...] = (attrgetter, itemgetter)
_TIMES = (date, datetime, time, timedelta)
_MAPPINGS = (dict, Counter, OrderedDict, defaultdict)


class NotData(Exception):
    """A part of a program does, or may do, more than compute with data."""


class LostOrder(NotData):
    """Code would see a set's items in an order that is not the set's own."""


def literal(value: Any) -> tuple[str, Writer]:
    """Plain data as a Python literal, the same in each process; and the writer of the literal."""
    writer = Writer(_refuse)
    return writer.written(value), writer


def _refuse(name: str, value: Any) -> str:
    raise NotData(f"a {type(value).__name__} is no plain data")


class Writer:
    """Writes values. named: returns the module's name for a function or class, given its own name.

    lost: the places of sets that get another order than the program's: names of attributes, and ""
    for other places. has_lost_numbers: whether one of these sets has the same order in each run of
    the program.
    """

    def __init__(self, named: Callable[[str, Any], str]) -> None:
        self._named = named
        self._around: list[int] = []
        self._attribute = ""
        self.lost: set[str] = set()
        self.has_lost_numbers = False

    def written(self, value: Any) -> str:
        kind = type(value)
        if kind is str and has_marker(value):
            raise NotData("a text is known only at run time")
        if value is None or kind in (bool, int, str):
            return repr(value)
        if kind is float and value == value and value not in (float("inf"), float("-inf")):
            return repr(value)
        if isinstance(value, _CALLED):
            return self._named(getattr(value, "__name__", ""), value)
        if id(value) in self._around:
            raise NotData(f"a {kind.__name__} holds itself")
        self._around.append(id(value))
        found = self._container(value, kind) or self._other(value, kind)
        self._around.pop()
        return found

    def _container(self, value: Any, kind: type) -> str:
        """A list, tuple, set, dict or the like as an expression; empty for another value."""
        if kind is list:
            return f"[{self._items(value)}]"
        if kind is tuple:
            return f"({self._items(value)}{',' if len(value) == 1 else ''})"
        if kind in (set, frozenset):
            return self._set(value, kind)
        if kind is deque:
            return f"{self._named('deque', deque)}([{self._items(value)}], {value.maxlen})"
        return self._mapping(value, kind) if kind in _MAPPINGS else ""

    def _set(self, value: Any, kind: Any) -> str:
        """A set as an expression. A set of numbers gets the order of the program's own set; a set
        of texts has no fixed order in the program either."""
        wanted, is_of_numbers = list(value), order_is_fixed(value)
        items = [*map(self.written, wanted)]
        if not is_of_numbers:
            items.sort()
        listed = ", ".join(items)
        display = f"{{{listed}}}" if kind is set else f"frozenset({{{listed}}})"
        if not wanted:
            display = f"{kind.__name__}()"
        elif is_of_numbers:
            for order in (wanted, as_added(value)):
                if _is_same(kind(order), value):
                    return f"{kind.__name__}([{self._items(order)}])"
        is_merged = len(wanted) > 2 and all(map(_is_constant, wanted))
        is_own = is_of_numbers or len(wanted) < 2
        if not is_own or not _is_same(kind(merged(wanted) if is_merged else set(wanted)), value):
            self.lost.add(self._attribute)
            self.has_lost_numbers = self.has_lost_numbers or is_of_numbers
        return display

    def _items(self, value: Any) -> str:
        return ", ".join(map(self.written, value))

    def _mapping(self, value: Any, kind: type) -> str:
        items = (f"{self.written(key)}: {self.written(item)}" for key, item in value.items())
        parts = "{" + ", ".join(items) + "}"
        if kind is dict:
            return parts
        name = self._named(kind.__name__, kind)
        if kind is not defaultdict:
            return f"{name}({parts})"
        return f"{name}({factory_of(value, self._library)}, {parts})"

    def _library(self, kind: type) -> str:
        return self._named(kind.__name__, kind)

    def _other(self, value: Any, kind: type) -> str:
        if kind is re.Pattern:
            return f"{self._named('compile', re.compile)}({value.pattern!r}, {int(value.flags)})"
        if kind in _NUMBERS:
            return f"{self._named(kind.__name__, kind)}({str(value)!r})"
        if kind is timedelta:
            amounts = (value.days, value.seconds, value.microseconds)
            return f"{self._named('timedelta', kind)}{amounts}"
        if kind in _TIMES and getattr(value, "tzinfo", None) is None:
            _, _, parts_text = repr(value).partition("(")
            return f"{self._named(kind.__name__, kind)}({parts_text}"
        if kind in _GETTERS:
            _, args = value.__reduce__()
            return f"{self._named(kind.__name__, kind)}({', '.join(map(self.written, args))})"
        if is_member(value):
            return f"{self._named(kind.__name__, kind)}.{value._name_}"
        if kind is partial:
            given = [f"{name}={self.written(each)}" for name, each in value.keywords.items()]
            args = [self.written(pythons(value.func)), *map(self.written, value.args), *given]
            return f"{self._named('partial', partial)}({', '.join(args)})"
        if is_record(value):
            parts = ", ".join(f"{k!r}: {self._part(k, v)}" for k, v in parts_of(value).items())
            return f"restored({self._named(kind.__name__, kind)}, {{{parts}}})"
        raise NotData(f"a {kind.__name__} is no plain data")

    def _part(self, name: str, value: Any) -> str:
        before, self._attribute = self._attribute, name
        found = self.written(value)
        self._attribute = before
        return found


def _is_same(made: Any, value: Any) -> bool:
    """Whether two sets have the same order, also after both get the same further items."""
    return list(made) == list(value) if type(value) is frozenset else is_same(made, value)


def _is_constant(value: Any) -> bool:
    """Whether Python's compiler treats the text of a number as a constant."""
    return type(value) in (int, float, bool) or (
        type(value) is tuple and all(map(_is_constant, value))
    )


def factory_of(value: defaultdict[Any, Any], library: Callable[[type], str]) -> str:
    """The function that makes the values of new keys, as an expression. library: returns the name
    of a type of `collections`. Raises NotData."""
    factory: Any = value.default_factory
    if factory in (Counter, OrderedDict):
        return library(factory)
    found = FACTORIES.get(factory)
    if found is None and isinstance(factory, FunctionType):
        found = _always(factory, library)
    if not found:
        raise NotData("a defaultdict of other things")
    return found


def _always(function: FunctionType, library: Callable[[type], str]) -> str:
    """The expression of a lambda that always returns a constant, its own or its module's, a display
    of constants, or an empty dict of `collections`; empty for another function."""
    node = source_of(function)
    if not isinstance(node, ast.Lambda) or parameters(node.args):
        return ""
    body = node.body
    if isinstance(body, ast.Call):
        made = _made_empty(body, function)
        if made is None:
            return ""
        name = library(type(made))
        given = f"{name}({factory_of(made, library)})" if type(made) is defaultdict else f"{name}()"
        return f"always({given})"
    if isinstance(body, ast.Name):
        given = _global(body, function)
    else:
        try:
            given = ast.literal_eval(body)
        except ValueError:
            return ""
    return f"always({given!r})" if _is_always(given) else ""


def _global(node: ast.expr, function: FunctionType) -> Any:
    """The global or builtin to which a name refers in a function; an ellipsis if there is none."""
    if not isinstance(node, ast.Name) or node.id in function.__code__.co_freevars:
        return ...
    return function.__globals__.get(node.id, getattr(builtins, node.id, ...))


def _made_empty(node: ast.Call, function: FunctionType) -> Any:
    """The empty object that a call of a type of `collections` makes; None for other calls."""
    kind = _global(node.func, function)
    if node.keywords or kind not in (Counter, OrderedDict, defaultdict):
        return None
    if kind is not defaultdict:
        return None if node.args else kind()
    factory: Any = _global(node.args[0], function) if len(node.args) == 1 else ...
    known = (*FACTORIES, Counter, OrderedDict)
    return defaultdict(factory) if any(factory is each for each in known) else None


def _is_always(value: Any) -> bool:
    kind = type(value)
    if kind in (list, tuple, dict):
        parts = [*value, *value.values()] if kind is dict else value
        return all(map(_is_always, parts))
    is_text = kind is str and not has_marker(value)
    return (
        is_text
        or value is None
        or kind in (bool, int)
        or (kind is float and value == value and abs(value) != float("inf"))
    )


def is_fixed(value: Any) -> bool:
    """Whether nothing can change a constant or its parts."""
    if isinstance(value, (tuple, frozenset)):
        return all(map(is_fixed, value))
    if is_record(value):
        return bool(form_of(value)) and all(map(is_fixed, parts_of(value).values()))
    if type(value) is partial:
        return all(map(is_fixed, (*value.args, *value.keywords.values())))
    return isinstance(value, (*FIXED, *_CALLED, _lru_cache_wrapper)) or is_member(value)


def is_value(value: Any) -> bool:
    """Whether a value is a text, a number, a date or the like, a member of an enumeration or None,
    or a tuple or frozenset of these, which `Writer` writes."""
    kind = type(value)
    if kind in (tuple, frozenset):
        return all(map(is_value, value))
    if kind is float:
        return bool(value == value and abs(value) != float("inf"))
    if kind in _TIMES:
        return getattr(value, "tzinfo", None) is None
    return value is None or kind in (bool, int, str, *_NUMBERS) or is_member(value)


def holds_changeable(value: Any) -> bool:
    """Whether a constant holds a list, dict, set or object that can be changed."""
    if is_record(value):
        return not all(map(is_fixed, parts_of(value).values()))
    parts = value.values() if isinstance(value, dict) else value
    is_container = isinstance(value, (list, tuple, dict, set, frozenset, deque))
    return is_container and not all(map(is_fixed, parts))


def holds_made(value: Any) -> bool:
    """Whether a constant holds a function or a user's class, or an object or member of one: the
    function or class must come before the constant in the module."""
    if isinstance(value, (FunctionType, partial)) or is_record(value) or is_member(value):
        return True
    if isinstance(value, type):
        return bool(value.__flags__ & _HEAP_TYPE)
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    is_container = isinstance(value, (list, tuple, dict, set, frozenset, deque))
    return is_container and any(map(holds_made, parts))


def holds_defaulting(value: Any) -> bool:
    """Whether a value is or holds a `defaultdict`, to which reading a key may add the key."""
    left, seen = [value], set[int]()
    while left:
        each = left.pop()
        if isinstance(each, defaultdict):
            return True
        if id(each) in seen:
            continue
        seen.add(id(each))
        if is_record(each):
            left += parts_of(each).values()
        elif isinstance(each, dict):
            left += each.values()
        elif isinstance(each, (list, tuple, deque)):
            left += each
    return False
