"""Replacements that handle abstract values, for builtins that a class cannot overload."""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from string import ascii_lowercase
from types import FunctionType, GeneratorType
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.ir import types
from sgc.ir.types import Kind
from sgc.lang.group import ProgramStateGroup
from sgc.tracing.operators.calls import KNOWING, passed
from sgc.tracing.operators.collected import listed_in
from sgc.tracing.operators.lists import keyed, ordered
from sgc.tracing.operators.reading import guarded
from sgc.tracing.operators.texts import as_ascii, text
from sgc.tracing.overlays.endless import numbered, zipped
from sgc.tracing.overlays.running import ambient, opened, running
from sgc.tracing.overlays.showing import printing
from sgc.tracing.overlays.types import STANDS_FOR, Float, Int, Type, is_instance
from sgc.tracing.values.abstract import (
    AbstractJson,
    AbstractList,
    AbstractNumber,
    AbstractText,
    is_abstract,
    marked,
    python_type,
)
from sgc.tracing.values.abstract_loops import Items, Iterated, Loop, Mixed, Numbered, NumberedItems
from sgc.tracing.values.abstract_number import type_of
from sgc.tracing.values.abstract_range import range_of
from sgc.tracing.values.computing import attempted, computed, whole
from sgc.tracing.values.live.abstract_live import AbstractLive, LiveItems
from sgc.tracing.values.open_fork import OpenFork


def _len(value: Any) -> Any:
    if isinstance(value, OpenFork):
        return value.n_items()
    if not is_abstract(value):
        own = getattr(type(value), "__len__", None)
        return _own_length(value, own) if type(own) is FunctionType else len(value)
    if isinstance(value, AbstractJson):
        return value.length()
    if isinstance(value, AbstractNumber):
        return len(value.python())  # raises Python's own error
    return computed(_session(value), "len", value)


def _own_length(value: Any, own: FunctionType) -> Any:
    """The result of the program's own `__len__`, which may be known only at run time."""
    session: Any = current_session()
    if session is None or not session.is_tracing:
        return len(value)
    entered = session.entered(own)
    before, session.length_of = session.length_of, getattr(entered, "__code__", None)
    try:
        found = entered(value)
    finally:
        session.length_of = before
    if not isinstance(found, AbstractNumber):
        return len(_Long(found))
    if found.symbol.type.kind is not Kind.INT:
        stop("__len__ gives a number that may be no int", INTERPRET)
    if computed(session, "lt", found, 0):
        raise ValueError("__len__() should return >= 0")
    return found


class _Long:
    """An object of a given length, which Python checks."""

    def __init__(self, n: Any) -> None:
        self._n = n

    def __len__(self) -> Any:
        return self._n


def _listed(items: Any) -> Any:
    """The characters of a text known only at run time; any other iterable itself."""
    found = text(items)
    if type(found) is AbstractLive:
        return LiveItems(found)
    return found.session.characters_of(found) if isinstance(found, AbstractText) else items


def _enumerate(items: Any, start: Any = 0) -> Any:
    items = _listed(items)
    if isinstance(items, _LISTED):
        return Numbered(items.session, Items(items.iterated()), whole(start))
    if (found := numbered(items, start)) is not None:
        return found
    if isinstance(items, Loop):
        return Numbered(items._session, items, whole(start))
    session: Any = current_session()
    if type(items) is GeneratorType and getattr(session, "loops", None) is not None:
        return NumberedItems(session, items, operator.index(start))
    return enumerate(items, start)


_LISTED = (AbstractList, OpenFork, LiveItems)


def _is_known(items: Any) -> bool:
    """Whether a value is Python's own sequence, or a fork into a known number of streams."""
    if isinstance(items, str):
        return type(items) is str and not is_abstract(items)
    return type(items) in (list, tuple, range, ProgramStateGroup)


def _zip(*iterables: Any, strict: Any = False) -> Any:
    lists = [*map(_listed, iterables)]
    found = zipped(lists) if strict is False else None
    if found is not None:
        return found
    listed = [each for each in lists if isinstance(each, _LISTED)]
    are_lists = all(isinstance(each, _LISTED) or _is_known(each) for each in lists)
    if not listed or not are_lists or type(strict) is not bool:
        return zip(*lists, strict=strict)
    if len(listed) < len(lists):
        parts = [each.iterated() if isinstance(each, _LISTED) else each for each in lists]
        return Mixed(listed[0].session, parts, strict)
    forks = [each for each in lists if type(each) is OpenFork]
    for each in lists:
        if forks and type(each) is LiveItems:
            each.is_as_long_as(forks[0].n_items())
    return Items(*(each.iterated() for each in lists), is_zipped=True, is_strict=strict)


def _isinstance(value: Any, of: Any) -> bool:
    return is_instance(value, *_types_in(of))


def _types_in(of: Any) -> list[Any]:
    """The types that an `isinstance` tests for, with Python's own in place of stand-ins."""
    if isinstance(of, tuple):
        return [each for part in of for each in _types_in(part)]
    parts = getattr(of, "__args__", None)
    if parts is not None and type(of).__name__ == "UnionType":
        return [each for part in parts for each in _types_in(type(None) if part is None else part)]
    return [STANDS_FOR.get(of, of) if isinstance(of, type) else of]


def _ord(char: Any) -> Any:
    if not is_abstract(char):
        return ord(char)
    if not isinstance(char, str):
        stop("ord() of a value that is not a text", hint="write ord(str(x)); or " + INTERPRET)
    return attempted(_session(char), "ord", char)


def _chr(code: Any) -> Any:
    if type_of(code) in (int, bool) and is_abstract(code):
        return attempted(code.session, "chr", code)
    return chr(code)


def _extreme(name: str, of_list: str) -> Callable[..., Any]:
    """min or max: one node if all items have one type; otherwise Python's own function, whose
    comparisons are decisions."""
    builtin = getattr(builtins, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and _is_list(args[0]):
            return _over(args[0], of_list, args[0].item_type, ("ValueError",))
        if any(isinstance(arg, AbstractJson) for arg in args):
            return _extreme_of_json(name, args, **kwargs)
        if any(map(marked, args)):
            stop(f"{name}() of a value known only at run time")
        items = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
        kinds = {_kind(item) for item in items}
        is_one = len(kinds) == 1 and None not in kinds
        if kwargs or not is_one or len(items) < 2 or not any(map(is_abstract, items)):
            return builtin(*args, **kwargs | {"key": keyed(kwargs.get("key"))})
        session = next(item.session for item in items if hasattr(item, "session"))
        return computed(session, name, *items, type_=types.Type(kinds.pop() or Kind.TEXT))

    function.__name__ = name
    return function


def _extreme_of_json(name: str, args: tuple[Any, ...], key: Any = None, **others: Any) -> Any:
    """min or max of values out of JSON, as code; key: none, or `d.get` for the keys of the dict."""
    is_by_value = getattr(key, "__self__", None) is args[0] and key.__name__ == "get"
    if others or not (key is None or is_by_value) or (is_by_value and len(args) > 1):
        stop(f"{name}() of a value known only at run time")
    first, *rest = sorted(args, key=lambda arg: not isinstance(arg, AbstractJson))
    places = [next(n for n, each in enumerate((first, *rest)) if each is arg) for arg in args]
    given = ", ".join(ascii_lowercase[n] for n in places)
    found = first._coded(f"{name}({given}{', key=a.get' if is_by_value else ''})", *rest)
    first.session.copies.add(found.symbol.name)  # an argument, or a part of one
    return found


def _operating(name: str) -> Callable[..., Any]:
    """A builtin that calls a special method of its first argument."""
    builtin = getattr(builtins, name)
    refusing = guarded(builtin)

    def function(*args: Any, **kwargs: Any) -> Any:
        is_of_json = bool(args) and isinstance(args[0], AbstractJson) and not kwargs
        return builtin(*args) if is_of_json else refusing(*args, **kwargs)

    return function


def _kind(value: Any) -> Kind | None:
    if isinstance(value, str):
        return Kind.TEXT
    of = type_of(value)
    return None if of is None else {int: Kind.INT, float: Kind.FLOAT, bool: Kind.BOOL}[of]


def _session(value: Any) -> Any:
    return value.session if hasattr(value, "session") else current_session()


def _iter(value: Any, *until: Any) -> Any:
    if marked(value):
        stop("iter() of a value known only at run time", _CHARACTERS)
    if isinstance(value, AbstractList) and not until:
        return Iterated(value.iterated())
    return iter(passed(value), *until) if until else iter(value)


def _sorted(items: Any, /, *, key: Any = None, reverse: Any = False) -> Any:
    if marked(items):
        stop("sorted() of a value known only at run time", _CHARACTERS)
    listed = listed_in(items) if key is None else None
    if listed is not None:
        code = "def piece(items, reverse):\n    return sorted(items, reverse=reverse)"
        return items.session.coded(code, (items, bool(reverse)), listed)
    items = _keys_of(items)
    if _is_list(items) and key is None:
        is_reversed = reverse if isinstance(reverse, AbstractNumber) else bool(reverse)
        return _over(items, "sorted", items.symbol.type, (), is_reversed)
    return ordered(items, key, reverse)


def _keys_of(items: Any) -> Any:
    """The keys of a dict out of JSON; any other value as it is."""
    is_dict = isinstance(items, AbstractJson) and items.is_a(dict)
    return items.keys() if is_dict else items


def _is_list(value: Any) -> bool:
    return isinstance(value, AbstractList) and not isinstance(value, AbstractJson)


_ORDERED = frozenset({Kind.TEXT, Kind.CHOICE, Kind.INT, Kind.FLOAT, Kind.BOOL})


def _over(items: Any, fn: str, type_: types.Type, errors: tuple[str, ...], *args: Any) -> Any:
    """Applies a function to a list; items of one ordered type raise no TypeError."""
    if items.item_type.kind not in _ORDERED:
        return attempted(items.session, fn, items, *args, type_=type_)
    if not errors:
        return computed(items.session, fn, items, *args, type_=type_)
    return attempted(items.session, fn, items, *args, type_=type_, errors=errors)


def _sum(items: Any, /, start: Any = 0) -> Any:
    if not _is_list(items):
        return functools.reduce(_plus, items, start) if type(start) is list else sum(items, start)
    found = {items.item_type.kind, _kind(start)} - {Kind.BOOL}
    if not found <= {Kind.INT, Kind.FLOAT}:
        return attempted(items.session, "sum", items, start, type_=types.JSON)
    kind = Kind.FLOAT if Kind.FLOAT in found else Kind.INT
    return computed(items.session, "sum", items, start, type_=types.Type(kind))


def _plus(left: Any, right: Any) -> Any:
    return left + right  # called from C, a list could not tell `+` from `+=`


def _some(name: str) -> Callable[[Any], Any]:
    builtin = getattr(builtins, name)
    return lambda items: computed(items.session, name, items) if _is_list(items) else builtin(items)


def _list(*args: Any) -> Any:
    return args[0][:] if len(args) == 1 and _is_list(args[0]) else list(*args)


_CHARACTERS = "use methods of the whole text (split, replace, count, find); or " + INTERPRET

BUILTINS: dict[str, Any] = {
    "abs": _operating("abs"),
    "all": _some("all"),
    "any": _some("any"),
    "ascii": as_ascii,
    "chr": _chr,
    "compile": running("compile"),
    "enumerate": _enumerate,
    "eval": running("eval"),
    "exec": running("exec"),
    "float": Float,
    "input": ambient("input"),
    "int": Int,
    "isinstance": _isinstance,
    "iter": _iter,
    "len": _len,
    "max": _extreme("max", "largest"),
    "min": _extreme("min", "smallest"),
    "open": opened,
    "ord": _ord,
    "print": printing,
    "range": range_of,
    "round": _operating("round"),
    "sorted": _sorted,
    "sum": _sum,
    "type": Type,
    "zip": _zip,
}


for _name, _function in BUILTINS.items():
    if type(_function) is FunctionType:  # a program may ask for its name
        _function.__name__ = _function.__qualname__ = _name


def _type(value: Any, *args: Any, **kwargs: Any) -> Any:
    return type(value, *args, **kwargs) if args or kwargs else python_type(value)


# For code converted in place, which sees its module's own names, and so Python's `type` and `int`.
KNOWING.update({getattr(builtins, name): value for name, value in BUILTINS.items()})
KNOWING[type] = _type
KNOWING[list] = _list
