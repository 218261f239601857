"""Python's operators, with limits on their results."""

from __future__ import annotations

import operator
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from enum import EnumType
from random import Random
from typing import Any

from sgc.runtime.executor.code.fuel import (
    CONTAINERS,
    MAPPINGS,
    SMALL,
    NotAllowed,
    charge,
    check_key,
    check_keys,
    check_power,
    checked,
    current,
    measure,
)
from sgc.runtime.executor.code.iterators import drained, entries, is_iterable, more_for
from sgc.runtime.executor.interface.records import record_of, shown_parts
from sgc.runtime.executor.interface.value_limits import (
    MAX_ITEMS,
    check_bits,
    check_items,
    check_length,
)

_BIG = 1 << 64
_REPEATED = (str, bytes, list, tuple, deque)
_SETS = frozenset({set, frozenset})


def add(a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is str and type(b) is str:
        check_length(len(a) + len(b))
    result = a + b
    kind = type(result)
    if kind is float or (kind is int and -_BIG < result < _BIG):
        return result
    return checked(result)


def sub(a: Any, b: Any) -> Any:
    if type(a) in CONTAINERS:
        _check_sets(a, b)
    result = a - b
    kind = type(result)
    if kind is float or (kind is int and -_BIG < result < _BIG):
        return result
    return checked(result)


def mul(a: Any, b: Any) -> Any:
    _check_repeat(a, b)
    result = a * b
    kind = type(result)
    if kind is float or (kind is int and -_BIG < result < _BIG):
        return result
    if kind is int:
        charge((a.bit_length() * b.bit_length()) >> 18)
    return checked(result)


def _check_repeat(a: Any, b: Any) -> None:
    for items, times in ((a, b), (b, a)):
        if isinstance(items, _REPEATED) and isinstance(times, int):
            n = len(items) * max(times, 0)
            (check_length if isinstance(items, (str, bytes)) else check_items)(n)


def power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        check_power(a, b)
        charge(abs(b).bit_length() + 1)
    result = a**b
    if isinstance(result, complex):
        raise NotAllowed(f"{a!r} ** {b!r} is a complex number")
    return checked(result)


def lshift(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and a and b > 0:
        check_bits(a.bit_length() + b)
    is_zero = type(a) is int and a == 0 and isinstance(b, int) and b >= 0
    return checked(0 if is_zero else a << b)


def mod(a: Any, b: Any) -> Any:
    if isinstance(a, str):
        return percent(a, b)
    if type(a) is bytes:
        raise NotAllowed("% of bytes is not allowed in a graph's code")
    return _division(operator.mod, a, b)


def _division(operation: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    if type(a) is int and type(b) is int and not -_BIG < b < _BIG:
        charge((a.bit_length() * b.bit_length()) >> 18)
    return checked(operation(a, b))


_FORMS = re.compile(r"%(?:\([^)]*\))?[#0\- +]*(\*|\d+)?(?:\.(\*|\d+))?")


def percent(text: str, values: Any) -> str:
    """`text % values`."""
    n_chars = len(text) + measure(values)
    for width, precision in _FORMS.findall(text):
        for each in (width, precision):
            n_chars += int(each[:9]) if each.isdecimal() else 0
        if "*" in (width, precision) and isinstance(values, tuple):
            n_chars += sum(abs(value) for value in values if isinstance(value, int))
    check_length(n_chars)
    check_shown(values)
    result: str = checked(text % values)
    return result


def check_shown(value: Any, depth: int = 0) -> None:
    """Refuses values whose text contains an address: functions and iterators.

    Callers call `measure` first, which bounds the nesting.
    """
    kind = type(value)
    if kind in CONTAINERS:
        if kind in MAPPINGS:
            if kind is defaultdict and has_address(value.default_factory):
                raise NotAllowed("a defaultdict with a function is no text in a graph's code")
            check_shown([*value.keys(), *value.values()])
            return
        for each in set(map(type, value)) - _SHOWN:
            for item in value:
                if type(item) is each:
                    check_shown(item)
        return
    record = record_of(kind)
    if record is not None:
        check_shown(shown_parts(record, value))
    elif isinstance(value, BaseException):
        check_shown(value.args)
    elif kind not in _SHOWN and has_address(value):
        raise NotAllowed(f"a {kind.__name__} is no text in a graph's code")


def has_address(value: Any) -> bool:
    """Whether a value's text contains its address: a function or an iterator."""
    is_called = callable(value) and not isinstance(value, type)
    return (
        is_called
        or hasattr(type(value), "__next__")
        or (type(value) is Random and current().is_live)
    )


_SHOWN = frozenset({str, bytes, *SMALL})


def _check_sets(a: Any, b: Any) -> None:
    for each in (a, b):
        if type(each) in CONTAINERS:
            charge(len(each) >> 1)
            if not MAPPINGS.isdisjoint({type(each)}) or type(each) in _SETS:
                check_keys(each, 0)


def _of_sets(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def function(a: Any, b: Any) -> Any:
        if type(a) is not int or type(b) is not int:
            if isinstance(a, type) or isinstance(b, type):
                raise NotAllowed("types are no values of | in a graph's code")
            _check_sets(a, b)
        return checked(operation(a, b))

    return function


def _inplace_of_sets(
    operation: Callable[[Any, Any], Any], plain: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    """An augmented assignment, which changes a set, dict or counter in place."""

    def function(a: Any, b: Any) -> Any:
        if type(a) not in CONTAINERS:
            return plain(a, b) if type(a) in SMALL else checked(operation(a, b))
        takes_pairs = operation is operator.ior and type(a) in MAPPINGS - {Counter}
        if takes_pairs and is_iterable(b):
            b = entries(b, a)
        _check_sets(a, b)
        result = operation(a, b)
        check_items(len(result))
        return result

    return function


def _other_inplace(
    operation: Callable[[Any, Any], Any], plain: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    """Any other augmented assignment. For numbers and texts it is the plain operator, except that
    an error names the augmented operator.
    """

    def function(a: Any, b: Any) -> Any:
        kind = type(a)
        if kind in (list, deque):
            return _list_inplace(operation, a, b)
        if kind in MAPPINGS or kind is set:
            return _inplace_of_sets(operation, plain)(a, b)
        try:
            return plain(a, b)
        except TypeError:
            return checked(operation(a, b))

    return function


def _list_inplace(operation: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    if operation is operator.iadd and record_of(type(b)) is not None:
        result = _reflected(a, b)
        if result is not NotImplemented:
            return checked(result)
    if operation is operator.iadd and is_iterable(b):
        b = more_for(a, b)
    elif operation is operator.imul:
        _check_repeat(a, b)
        charge(len(a))
    return operation(a, b)


def _reflected(a: Any, b: Any) -> Any:
    """The result of an object's `__radd__`, which Python calls before it extends a list."""
    reflected = getattr(type(b), "__radd__", None)
    return NotImplemented if reflected is None else reflected(b, a)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": add,
    "Sub": sub,
    "Mult": mul,
    "Div": lambda a, b: _division(operator.truediv, a, b),
    "FloorDiv": lambda a, b: _division(operator.floordiv, a, b),
    "Mod": mod,
    "Pow": power,
    "LShift": lshift,
    "RShift": lambda a, b: checked(operator.rshift(a, b)),
    "BitOr": _of_sets(operator.or_),
    "BitAnd": _of_sets(operator.and_),
    "BitXor": _of_sets(operator.xor),
}
_INPLACE = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "Pow": operator.ipow,
    "LShift": operator.ilshift, "RShift": operator.irshift, "BitOr": operator.ior,
    "BitAnd": operator.iand, "BitXor": operator.ixor,
}  # fmt: skip
AUGMENTED: dict[str, Callable[[Any, Any], Any]] = {
    name: _other_inplace(operation, BINARY[name]) for name, operation in _INPLACE.items()
}


def negated(value: Any) -> Any:
    return checked(-value)


def inverted(value: Any) -> Any:
    return checked(~value)


UNARY: dict[str, Callable[[Any], Any]] = {
    "Not": operator.not_,
    "USub": negated,
    "UAdd": lambda value: checked(+value),
    "Invert": inverted,
}


def subscript(items: Any, key: Any) -> Any:
    """`items[key]`."""
    kind = type(items)
    if kind is dict or kind in MAPPINGS:
        if type(key) is not str:
            check_key(key, len(items))
        return items[key]
    if type(key) is slice:
        return checked(items[key]) if kind is not range else items[key]
    if isinstance(items, type) and not isinstance(items, EnumType):
        raise NotAllowed(f"{items.__name__}[...] is not allowed in a graph's code")
    if kind is deque:
        charge(len(items) >> 8)
    return items[key]


def put(items: Any, key: Any, value: Any) -> None:
    """`items[key] = value`."""
    kind = type(items)
    if kind in MAPPINGS:
        check_key(key, len(items))
        if len(items) >= MAX_ITEMS:
            check_items(len(items) + 1)
    elif type(key) is slice and kind is list:
        if is_iterable(value):
            value = drained(value)
            check_items(len(items) + len(value))
        charge(len(items) >> 6)
    elif kind is deque:
        charge(len(items) >> 8)
    items[key] = value


def remove(items: Any, key: Any) -> None:
    """`del items[key]`."""
    if type(items) in MAPPINGS:
        check_key(key, len(items))
    elif type(items) in CONTAINERS:
        charge(len(items) >> 8)
    del items[key]
