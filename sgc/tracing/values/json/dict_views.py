"""The keys, values and items of dicts known only at run time, where they differ from lists.

Such a view is a list of the graph: loops, `len`, `in` and the like use it as a list. An operation
that differs between views and lists becomes code on the dict itself, or stops the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any, NoReturn

from sgc.core.stops import INTERPRET, stop
from sgc.ir import types

_EMPTY: dict[str, Any] = {"keys": {}.keys(), "values": {}.values(), "items": {}.items()}


def part_of(value: Any) -> str:
    """Whether a list of the graph is the "keys", "values" or "items" of a dict; else empty."""
    found = value.session.view_of(value.symbol)
    return "" if found is None else found[1]


def is_of_code(value: object) -> bool:
    """Whether a value is of a type that JSON does not have: a tuple, a set, or a view of a dict."""
    if hasattr(type(value), "symbol"):
        return hasattr(type(value), "iterated") and bool(part_of(value))
    return issubclass(type(value), (tuple, Set))


def dict_of(value: Any) -> Any:
    """The dict that a list of the graph is a view of."""
    of, _ = value.session.view_of(value.symbol)
    return value.session.read(of)


def like(value: Any) -> Any:
    """Python's own view, which raises Python's errors, for a list of the graph that is a view; else
    None."""
    return _EMPTY.get(part_of(value))


def needs_list(value: Any) -> NoReturn:
    stop(
        f"the {part_of(value)}() of a dict known only at run time are used for more than a loop",
        hint="make a list or set of them first, set(d); or " + INTERPRET,
    )


def shown(value: Any) -> Any:
    """The text that `str` makes of a view."""
    code = f"def piece(a):\n    return str(a.{part_of(value)}())"
    return value.session.coded(code, (dict_of(value),), types.TEXT)


class SetOperations:
    """The operators of sets, which views of dicts have but lists do not."""

    __slots__ = ()


def _operation() -> Callable[..., Any]:
    def operate(self: Any, other: Any) -> Any:
        if part_of(self):
            needs_list(self)
        return NotImplemented

    return operate


for _name in ("sub", "and", "or", "xor"):
    for _prefix in ("", "r"):
        setattr(SetOperations, f"__{_prefix}{_name}__", _operation())
