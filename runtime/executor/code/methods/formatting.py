"""Formatting of values: the size of a text is checked before it is made."""

from __future__ import annotations

import string
from _string import formatter_field_name_split  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sgc.runtime.executor.code.fuel import NotAllowed, charge, checked, measure, number_checks
from sgc.runtime.executor.code.methods.attributes import attribute
from sgc.runtime.executor.code.methods.operators import check_shown
from sgc.runtime.executor.interface.records import record_of
from sgc.runtime.executor.interface.value_limits import check_length

_UNMEASURED = frozenset({float, bool, type(None)})


def show(convert: Callable[[Any], str], value: Any) -> str:
    """`str`, `repr` or `ascii` of a value."""
    charge(1)
    if type(value) not in _UNMEASURED:
        check_length(measure(value))
        check_shown(value)
    result: str = checked(convert(value))
    return result


def to_text(*args: Any, **kwargs: Any) -> str:
    """`str(...)`."""
    charge(2)
    if len(args) == 1 and not kwargs:
        return args[0] if type(args[0]) is str else show(str, args[0])
    if args and isinstance(args[0], bytes):
        charge(len(args[0]) >> 4)
        for encoding in args[1:2]:
            check_encoding(encoding)
        check_encoding(kwargs.get("encoding", "utf-8"))
    result: str = checked(str(*args, **kwargs))
    return result


_ENCODINGS = frozenset({"utf8", "ascii", "latin1", "utf16", "utf32", "usascii", "iso88591",
                        "cp1252", "utf8sig", "utf16le", "utf16be"})  # fmt: skip


def check_encoding(name: Any) -> None:
    """Refuses codecs that are slow, or not text encodings."""
    if not isinstance(name, str):
        return
    if name.lower().replace("-", "").replace("_", "") not in _ENCODINGS:
        raise NotAllowed(f"the encoding {name[:40]!r} is not allowed in a graph's code")


def format_value(value: Any, spec: Any = "") -> str:
    """`format(value, spec)`."""
    if type(spec) is str and spec:
        check_length(widest(spec))
        if type(value) in number_checks:
            number_checks[type(value)](value)
    if type(value) is str:
        result: str = checked(format(value, spec))
        return result
    if type(value) not in _UNMEASURED:
        check_length(measure(value))
        check_shown(value)
    shown: str = checked(format(value, spec))
    return shown


def widest(spec: str) -> int:
    """The sum of the numbers in a format specification: its width and precision."""
    digits = "".join(char if char.isdecimal() else " " for char in spec)
    return sum(int(number[:9]) for number in digits.split())


def format_text(text: str, /, *args: Any, **kwargs: Any) -> str:
    """`text.format(...)`, without attributes in its fields."""
    return _Formatter().vformat(text, args, kwargs)


def format_map(text: str, mapping: Any, /) -> str:
    """`text.format_map(mapping)`, without attributes in its fields."""
    result: str = _Formatter().vformat(text, _NO_ARGS, mapping)
    return result


_NO_ARGS: list[Any] = []


class _Formatter(string.Formatter):
    """Python's formatter with limits, and with the errors of `str.format`."""

    def __init__(self) -> None:
        self._n_chars = 0

    def parse(self, format_string: Any) -> Iterable[Any]:
        charge(4 + (len(format_string) >> 3))
        return super().parse(format_string)

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        first, rest = _split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, key in rest:
            if is_attribute and record_of(type(value)) is not None:
                value = attribute(value, str(key))
                continue
            if is_attribute:
                raise NotAllowed(f"the field {field_name[:40]!r} reads an attribute")
            value = value[key]
        return value, first

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if not isinstance(key, int):
            return kwargs[key]
        if args is _NO_ARGS:
            raise ValueError("Format string contains positional fields")
        if key >= len(args):
            raise IndexError(f"Replacement index {key} out of range for positional args tuple")
        return args[key]

    def format_field(self, value: Any, format_spec: str) -> str:
        text = format_value(value, format_spec)
        self._n_chars += len(text)
        check_length(self._n_chars)
        return text

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion is None:
            return value
        convert: Any = {"s": str, "r": repr, "a": ascii}.get(conversion)
        if convert is None:
            raise ValueError(f"Unknown conversion specifier {conversion!r}")
        return show(convert, value)


def _split(field_name: str) -> tuple[int | str, Any]:

    found: tuple[int | str, Any] = formatter_field_name_split(field_name)
    return found
