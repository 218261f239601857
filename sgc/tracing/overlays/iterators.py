"""Iterators and files from outside of a program, which other code may advance too."""

from __future__ import annotations

import io
import sys
from types import GeneratorType
from typing import Any, NoReturn

from sgc.tracing.values.abstract import INTERPRET, stop

_HEAP_TYPE = 1 << 9


class OutsideIterator:
    """Stands for an iterator or file; stops the trace just before the program uses it."""

    def __init__(self, name: str, what: str) -> None:
        self._name, self._what = name, what

    def _refuse(self, *args: Any) -> NoReturn:
        stop(
            f"the program uses {self._name!r}, {self._what} outside of it, which a compiled "
            "program would not take further",
            hint="make it in the program, or pass the item as an argument; or " + INTERPRET,
        )

    __iter__ = __next__ = __length_hint__ = __enter__ = __exit__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()


def held_back(name: str, value: Any) -> Any:
    """The stand-in for Python's own iterator, a generator or an opened file; any other value, and
    the files that a program prints to, unchanged."""
    kind = type(value)
    if isinstance(value, io.IOBase):
        is_printed_to = value in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
        return value if is_printed_to else OutsideIterator(name, "a file")
    is_c = not kind.__flags__ & _HEAP_TYPE and hasattr(kind, "__next__")
    if is_c or isinstance(value, GeneratorType):
        return OutsideIterator(name, "an iterator")
    return value
