"""Iterators from outside of a program, whose next item depends on what others have taken."""

from __future__ import annotations

import io
from types import GeneratorType
from typing import Any, NoReturn

from sgc.tracing.values.abstract import INTERPRET, stop

_HEAP_TYPE = 1 << 9


class OutsideIterator:
    """Stands for an iterator; stops the trace where the program uses it, and takes no item."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, *args: Any) -> NoReturn:
        stop(
            f"the program takes items of {self._name!r}, an iterator outside of it, which a "
            "compiled program would not take further",
            hint="make the iterator in the program, or pass the item as an argument; or "
            + INTERPRET,
        )

    __iter__ = __next__ = __length_hint__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()


def held_back(name: str, value: Any) -> Any:
    """The stand-in for an iterator of Python's own, or a generator; any other value itself."""
    kind = type(value)
    is_c = not kind.__flags__ & _HEAP_TYPE and not isinstance(value, io.IOBase)
    if isinstance(value, GeneratorType) or (is_c and hasattr(kind, "__next__")):
        return OutsideIterator(name)
    return value
