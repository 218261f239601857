"""Python's builtins, which charge for their work and their results."""

from __future__ import annotations

import builtins
import itertools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sgc.ir.code_names import EXCEPTIONS
from sgc.runtime.executor.code.fuel import (
    CONTAINERS,
    SIZED,
    SMALL,
    NotAllowed,
    charge,
    check_key,
    check_power,
    checked,
    measure,
)
from sgc.runtime.executor.code.iterators import (
    drained,
    entries,
    is_iterable,
    keys_for,
    nested,
    source,
    taken,
)
from sgc.runtime.executor.code.methods.attributes import GUARDS, guarded
from sgc.runtime.executor.code.methods.container_methods import charge_sort, sort_key
from sgc.runtime.executor.code.methods.formatting import check_encoding, format_value, show, to_text
from sgc.runtime.executor.code.methods.instances import (
    get_attribute,
    has_attribute,
    put_attribute,
    restored,
)
from sgc.runtime.executor.code.methods.operators import add, power
from sgc.runtime.executor.code.methods.text_methods import text_to_int
from sgc.runtime.executor.interface.records import record_of
from sgc.runtime.executor.interface.value_limits import check_bits, check_length


def _made(kind: type) -> Callable[..., Any]:
    """The constructor of a list, tuple or set from any iterable."""
    is_hashed = kind in (set, frozenset)

    def make(*args: Any, **kwargs: Any) -> Any:
        charge(4 if is_hashed else 1)
        if len(args) != 1 or kwargs or not is_iterable(args[0]):
            return kind(*args, **kwargs)
        if not is_hashed:
            return checked(kind(drained(args[0])))
        made: set[Any] = set()
        made.update(keys_for(args[0], made))
        return checked(made if kind is set else kind(made))

    return make


def _dict(*args: Any, **kwargs: Any) -> Any:
    charge(4)
    if len(args) == 1 and is_iterable(args[0]):
        made: dict[Any, Any] = {}
        made.update(entries(args[0], made), **kwargs)
        return checked(made)
    return checked(dict(*args, **kwargs))


def _consumed(real: Callable[..., Any]) -> Callable[..., Any]:
    """A function that may consume all items of its first argument."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if args and is_iterable(args[0]):
            args = (source(args[0]), *args[1:])
        return real(*args, **kwargs)

    return function


def _extreme(real: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        charge(3)
        if kwargs.get("key") is not None:  # the key's results are compared, not the items
            called = guarded(kwargs["key"])
            kwargs["key"] = lambda item: _measured(called(item))
            args = (taken(args[0]),) if len(args) == 1 and is_iterable(args[0]) else args
        elif len(args) == 1 and is_iterable(args[0]):
            args = (taken(args[0], _measured),)
            if type(args[0]) in CONTAINERS:
                measure(args[0])
        elif len(args) > 1:
            for each in args:
                if type(each) not in SMALL:
                    measure(each)
        return real(*args, **kwargs)

    return function


def _measured(item: Any) -> Any:
    if type(item) not in SMALL:
        measure(item)
    return item


def _sum(*args: Any, **kwargs: Any) -> Any:
    """`sum`, with C's results: a prefix of small numbers in one call, since C rounds a sum of
    floats only at its end; the rest one by one.
    """
    if not args or not is_iterable(args[0]):
        return sum(*args, **kwargs)
    items = args[0]
    sum([], *args[1:], **kwargs)
    total = [*args[1:], *kwargs.values(), 0][0]
    if type(items) in SIZED and set(map(type, items)) <= SMALL and type(total) in SMALL:
        return checked(sum(drained(items), total))
    rest = iter(taken(items))
    if _is_small(total):
        small, other = [], []
        for item in rest:
            if not _is_small(item):
                other.append(item)
                break
            small.append(item)
        else:
            return sum(small, total)  # not asked again: an iterator may continue after its end
        total = sum(small, total)
        rest = itertools.chain(other, rest)
    for item in rest:
        charge(2)
        total = add(total, item)
    return total


def _is_small(value: Any) -> bool:
    kind = type(value)
    return kind in (float, bool) or (kind is int and -(1 << 63) <= value < 1 << 63)


def _sorted(*args: Any, **kwargs: Any) -> Any:
    if len(args) != 1 or not is_iterable(args[0]):
        return sorted(*args, **kwargs)
    items = drained(args[0])
    charge(len(items) >> 2)
    if kwargs.get("key") is not None:
        kwargs["key"] = sort_key(kwargs["key"], len(items))
    elif type(items) is not range:
        charge_sort(items)
    return sorted(items, **kwargs)


def _map(*args: Any) -> Any:
    sources = args[1:]
    if not sources:
        return map(*args)
    return nested(map(guarded(args[0]), *sources), *sources)


def _filter(*args: Any) -> Any:
    if len(args) != 2:
        return filter(*args)
    return nested(filter(guarded(args[0]), source(args[1])), args[1])


def _zip(*args: Any, **kwargs: Any) -> Any:
    return nested(zip(*args, **kwargs), *args)  # noqa: B905


def _enumerate(*args: Any, **kwargs: Any) -> Any:
    return nested(enumerate(*args, **kwargs), *args[:1])


def _iter(*args: Any) -> Any:
    if len(args) == 2:
        return nested(iter(guarded(args[0]), args[1]), args[1])
    return iter(*args)


def _pow(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 2 and not kwargs:
        return power(*args)
    for each in args:
        if type(each) is int:
            check_bits(each.bit_length())
            charge(each.bit_length() >> 4)
    if len(args) == 3 and all(type(each) is int for each in args):
        # Each bit of the exponent costs a multiplication of numbers as large as the modulus.
        charge(args[1].bit_length() * (args[2].bit_length() >> 6) ** 2 >> 6)
    elif len(args) != 3:
        check_power(2, 2)
        return (
            power(*args, **kwargs)
            if not kwargs
            else power(kwargs.get("base", *args[:1]), kwargs["exp"])
        )
    return checked(pow(*args, **kwargs))


def _round(*args: Any, **kwargs: Any) -> Any:
    digits = kwargs.get("ndigits", args[1] if len(args) > 1 else None)
    if args and isinstance(args[0], int) and isinstance(digits, int) and digits < 0:
        check_bits(-digits * 3.33)  # Python computes 10**-digits
    return checked(round(*args, **kwargs))


def _divmod(*args: Any) -> Any:
    for each in args:
        if type(each) is int:
            charge(each.bit_length() >> 6)
    result = divmod(*args)  # type: ignore[misc]
    for each in result if type(result) is tuple else ():
        checked(each)
    return result


def _type(*args: Any) -> type:
    """The class of data, or of an object or error; no class is made."""
    charge(1)
    if len(args) != 1:
        raise NotAllowed("type() makes no class in a graph's code")
    kind = type(args[0])
    if record_of(kind) is not None or issubclass(kind, BaseException):
        return kind
    kind = str if issubclass(kind, str) else kind  # a text of the run's may have marks
    if kind not in _KINDS:
        raise NotAllowed(f"the class of a {kind.__name__} is not allowed in a graph's code")
    return kind


_KINDS = frozenset({
    type(None), bool, int, float, str, bytes, list, tuple, dict, set, frozenset, deque, Counter,
    defaultdict, OrderedDict, Decimal, Fraction, date, datetime, time, timedelta, range,
})  # fmt: skip


def _slice(*args: Any) -> slice:
    if any(type(each) not in SMALL for each in args):
        raise NotAllowed("a slice takes whole numbers in a graph's code")
    return slice(*args)


def _error(kind: Any) -> Callable[..., Any]:
    """The constructor of an exception. Some take only texts and numbers, since CPython frees their
    contents by recursion.
    """
    is_plain = kind.__basicsize__ == Exception.__basicsize__

    def make(*args: Any, **kwargs: Any) -> Any:
        charge(6)
        if not is_plain and any(type(each) not in SMALL and type(each) is not str for each in args):
            raise NotAllowed(f"{kind.__name__} takes texts and numbers in a graph's code")
        if kwargs:
            raise NotAllowed(f"{kind.__name__} takes no names in a graph's code")
        return kind(*args)

    return make


def _bytes(*args: Any, **kwargs: Any) -> bytes:
    if args and isinstance(args[0], str):
        for encoding in (*args[1:2], kwargs.get("encoding", "utf-8")):
            check_encoding(encoding)
        charge(len(args[0]) >> 4)
    elif len(args) == 1 and isinstance(args[0], int):
        check_length(args[0])
    if not args and "source" in kwargs:
        args = (kwargs.pop("source"),)
    if args and is_iterable(args[0]):
        args = (taken(args[0]), *args[1:])
    result: bytes = checked(bytes(*args, **kwargs))
    return result


def _reversed(*args: Any) -> Any:
    return nested(reversed(*args))


def _shown(convert: Callable[[Any], str]) -> Callable[..., str]:
    def function(*args: Any) -> str:
        return show(convert, args[0]) if len(args) == 1 else convert(*args)

    return function


def _format(*args: Any) -> str:
    return format_value(*args) if 0 < len(args) < 3 else format(*args)


def _hash(*args: Any) -> int:
    for each in args[:1]:
        charge(1)
        check_key(each, 0)
    return hash(*args)


def _float(*args: Any) -> float:
    charge(1)
    if args and isinstance(args[0], str):
        charge(len(args[0]) >> 4)
    return float(*args)


_GUARDED: dict[str, Callable[..., Any]] = {
    "all": _consumed(all), "any": _consumed(any), "ascii": _shown(ascii), "bytes": _bytes,
    "dict": _dict, "divmod": _divmod, "enumerate": _enumerate, "filter": _filter,
    "float": _float, "format": _format, "frozenset": _made(frozenset), "getattr": get_attribute,
    "hasattr": has_attribute, "hash": _hash, "int": text_to_int,
    "iter": _iter, "list": _made(list), "map": _map, "max": _extreme(max), "min": _extreme(min),
    "pow": _pow, "repr": _shown(repr), "reversed": _reversed, "round": _round,
    "set": _made(set), "setattr": put_attribute, "slice": _slice, "sorted": _sorted,
    "str": to_text, "sum": _sum, "tuple": _made(tuple), "zip": _zip,
}  # fmt: skip
_PLAIN = ("NotImplemented", "abs", "bin", "bool", "callable", "chr", "hex", "isinstance", "len",
          "next", "oct", "ord", "range")  # fmt: skip
BUILTIN_VALUES: dict[str, Any] = {
    name: getattr(builtins, name) for name in (*_PLAIN, *_GUARDED, *EXCEPTIONS)
}
BUILTIN_VALUES |= {"restored": restored, "type": _type}
GUARDS.update({BUILTIN_VALUES[name]: guard for name, guard in _GUARDED.items()})
GUARDS.update({BUILTIN_VALUES[name]: _error(BUILTIN_VALUES[name]) for name in EXCEPTIONS})
