"""Checks and copies of the data that goes into a run of code and comes out of it.

A run never shares mutable data with its caller, unless the code mutates nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from contextlib import suppress
from dataclasses import Field, dataclass
from functools import partial
from io import StringIO
from operator import is_
from random import Random
from types import BuiltinFunctionType, FunctionType
from typing import Any

from sgc.errors import ProgramError
from sgc.runtime.executor.code.classes.copying import copied_instance
from sgc.runtime.executor.code.fuel import (
    CONTAINERS,
    MAPPINGS,
    MAX_VALUE_DEPTH,
    NotAllowed,
    charge,
    current,
    measure,
)
from sgc.runtime.executor.code.methods.attributes import DATA, METHODS
from sgc.runtime.executor.code.set_order import copied_set
from sgc.runtime.executor.functions.own_texts import as_value
from sgc.runtime.executor.interface.records import held_parts, record_of
from sgc.runtime.executor.interface.value_limits import LimitExceeded

Memo = dict[int, tuple[Any, Any]]

# Python's own type for each guarded `default_factory` of a defaultdict.
FACTORIES: dict[Any, Any] = {}
MAX_ALWAYS = 200  # characters of the value that `always` copies
_FIXED = (type, FunctionType, BuiltinFunctionType, partial)  # code cannot change them
_ATOMS = frozenset({str, int, float, bool, bytes, type(None)})


@dataclass(frozen=True, eq=False, slots=True)
class _Always:
    """A `default_factory` that returns a new copy of a value each time."""

    value: Any

    def __call__(self) -> Any:
        return copied(self.value)


def always(value: Any, /) -> Any:
    """A factory for a defaultdict that returns copies of a value. The factory is data, like its
    value; the value must be small, since it is copied for each key."""
    charge(4)
    check_result(value)
    if measure(value) > MAX_ALWAYS:
        raise LimitExceeded("what a defaultdict gives for each new key is too large")
    return _Always(copied(value))


def copied(value: Any, memo: Memo | None = None) -> Any:
    """A deep copy of an argument; parts that occur twice stay shared.

    memo: gets each container in it with its copy, by the container's id.
    """
    return _copied(value, _Copies({} if memo is None else memo), 0)


def deep_copied(value: Any, memo: Memo) -> Any:
    """A copy as by Python's `deepcopy`, which adds the items of sets one by one."""
    return _copied(value, _Copies(memo, is_exact=False), 0)


@dataclass(frozen=True, slots=True)
class _Copies:
    """Copies under way. memo: as for `copied`; is_exact: whether sets keep their order."""

    memo: Memo
    is_exact: bool = True


def _copied(value: Any, copies: _Copies, depth: int) -> Any:
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind not in CONTAINERS and record_of(kind) is None:
        return _other(value, copies.memo)
    if id(value) in copies.memo:
        return copies.memo[id(value)][1]
    if depth > MAX_VALUE_DEPTH:
        raise LimitExceeded(f"an argument is nested more than {MAX_VALUE_DEPTH} deep")
    return _copy(value, kind, copies, depth + 1)


def _copy(value: Any, kind: type, copies: _Copies, depth: int) -> Any:
    """A copy of a container. It is put into the memo before its contents are copied, where that is
    possible, since they may contain it again.
    """
    record, memo = record_of(kind), copies.memo
    if record is not None:
        return copied_instance(value, record, memo, lambda item: _copied(item, copies, depth))
    if kind in (list, deque) or kind in MAPPINGS:
        made = emptied(value, kind)
        memo[id(value)] = (value, made)
        _fill(made, value, copies, depth)
        return made
    is_plain = set(map(type, value)) <= _ATOMS
    items = None if is_plain else [_copied(item, copies, depth) for item in value]
    made = _fixed_or_set(value, kind, items, copies.is_exact)
    memo[id(value)] = (value, made)
    return made


def _fixed_or_set(value: Any, kind: Any, items: list[Any] | None, is_exact: bool) -> Any:
    """A copy of a tuple, set or frozenset. items: copies of its items; None for the same items."""
    if kind is tuple:
        return value if items is None else kind(items)
    if not is_exact:
        return kind([*value] if items is None else items)
    if kind is set:
        made, has_order = copied_set(value, items)
        if not has_order:
            raise NotAllowed("a set has no copy of the same order", hint="use a list, or a dict")
        return made
    is_same = items is None or all(map(is_, items, value))
    return value if is_same else kind(items)


def emptied(value: Any, kind: type) -> Any:
    """An empty list, mapping or deque like a given one."""
    made: Any = kind()
    if kind is defaultdict:
        made = defaultdict(value.default_factory)
    elif kind is deque:
        made = deque(maxlen=value.maxlen)
    if kind in (deque, defaultdict):
        current().kept.append(made)
    return made


def _fill(made: Any, value: Any, copies: _Copies, depth: int) -> None:
    if type(made) not in MAPPINGS:
        is_plain = set(map(type, value)) <= _ATOMS
        made.extend(value if is_plain else [_copied(item, copies, depth) for item in value])
        return
    for key, item in value.items():
        at_key, at_item = _copied(key, copies, depth), _copied(item, copies, depth)
        if type(made) is Counter:
            dict.__setitem__(made, at_key, at_item)
        else:
            made[at_key] = at_item


def _other(value: Any, memo: Memo) -> Any:
    kind = type(value)
    if isinstance(value, str):
        return as_value(value) if type(as_value(value)) is str else str.__str__(value)
    if kind is Random:
        if id(value) not in memo:
            made = Random(0)
            made.setstate(value.getstate())
            memo[id(value)] = (value, made)
        return memo[id(value)][1]
    if kind is StringIO or hasattr(kind, "__next__"):
        raise NotAllowed(f"a {kind.__name__} is no value of a graph's code")
    is_fixed = kind is range or kind in METHODS or kind in DATA or isinstance(value, _FIXED)
    if is_fixed or isinstance(value, Exception):
        return value
    raise NotAllowed(f"a {kind.__name__} is no value of a graph's code")


def check_arguments(args: Any) -> bool:
    """Whether arguments need no copy: they are texts, numbers, and containers of them."""
    return all(_is_plain(each, 0) for each in args)


def _is_plain(value: Any, depth: int) -> bool:
    kind = type(value)
    if kind in _ATOMS:
        return True
    if kind not in CONTAINERS or depth > MAX_VALUE_DEPTH or kind is defaultdict:
        return False
    items = [*value.keys(), *value.values()] if kind in MAPPINGS else value
    kinds = set(map(type, items))
    return kinds <= _ATOMS or all(_is_plain(item, depth + 1) for item in items)


def check_result(value: Any) -> set[int]:
    """Raises NotAllowed for a result that is not data, such as a generator.

    Returns the ids of the containers in it.
    """
    seen: set[int] = set()
    _check(value, seen, 0)
    return seen


def _check(value: Any, seen: set[int], depth: int) -> None:
    kind = type(value)
    if kind in _ATOMS or id(value) in seen:
        return
    if depth > MAX_VALUE_DEPTH:
        raise LimitExceeded(f"a result is nested more than {MAX_VALUE_DEPTH} deep")
    record = record_of(kind)
    if kind not in CONTAINERS and record is None:
        _check_other(value, kind)
        return
    seen.add(id(value))
    if record is not None:
        for item in held_parts(record, value):
            _check(item, seen, depth + 1)
        return
    if kind is defaultdict:
        value.default_factory = FACTORIES.get(value.default_factory, value.default_factory)
    if kind is defaultdict and not _is_data_factory(value.default_factory):
        raise NotAllowed("code gives a defaultdict with a function of its own", hint=_HINT)
    items = [*value.keys(), *value.values()] if kind in MAPPINGS else value
    if not set(map(type, items)) <= _ATOMS:
        for item in items:
            _check(item, seen, depth + 1)


def _is_data_factory(factory: Any) -> bool:
    is_data = factory is None or type(factory) is _Always
    return is_data or (isinstance(factory, type) and record_of(factory) is None)


_HINT = "give a list, a dict or another value that is data"


def _check_other(value: Any, kind: type) -> None:
    is_data = kind is range or kind in METHODS or kind in DATA or isinstance(value, Exception)
    is_data = is_data and kind is not Field
    if not is_data or hasattr(kind, "__next__") or isinstance(value, type):
        raise NotAllowed(f"code gives a {kind.__name__}", hint=_way_out(value))


def _way_out(value: Any) -> str:
    """A hint on what to write in place of a value that is not data."""
    if isinstance(value, type):
        return "give an object of the class, or its name as a text"
    if callable(value):
        return (
            "call the function there and give what it returns; where one of several functions "
            "is chosen, keep its name as a text and call it by if and elif"
        )
    if hasattr(type(value), "__next__"):
        return "give list(…) of it, which has all items"
    return _HINT


def held_by(error: BaseException) -> set[int]:
    """The ids of the containers in an error that leaves a run."""
    seen: set[int] = set()
    record = record_of(type(error))
    for each in error.args if record is None else held_parts(record, error):
        with suppress(ProgramError):
            _check(each, seen, 0)
    return seen
