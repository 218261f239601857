"""Functions of texts: Python's own methods, where their results stay within the limits."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any

from sgc.runtime.executor.functions.own_texts import OwnText, joined
from sgc.runtime.executor.interface.value_limits import check_length


def _plainly(name: str) -> Callable[..., Any]:
    """The method of `str`, unchanged."""
    return lambda text, *args: methodcaller(name, *args)(text)


def _ends(name: str) -> Callable[..., bool]:
    def function(text: str, ends: Any, *span: int | None) -> bool:
        return bool(getattr(text, name)(ends if isinstance(ends, str) else tuple(ends), *span))

    return function


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    n = text.count(old) if count < 0 else min(count, text.count(old))
    check_length(len(text) + n * (len(new) - len(old)))
    return text.replace(old, new, count)


def _padded(name: str) -> Callable[..., str]:
    def function(text: str, width: int, *fill: str) -> str:
        check_length(max(len(text), width))
        return str(getattr(text, name)(width, *fill))

    return function


def _expandtabs(text: str, size: int = 8) -> str:
    check_length(len(text) + text.count("\t") * max(size, 0))
    return text.expandtabs(size)


def _part(name: str) -> Callable[[str, str, int], str]:
    return lambda text, sep, index: str(getattr(text, name)(sep)[index])


def _repeat(text: str, times: int) -> str:
    check_length(len(text) * max(times, 0))
    return text * times


def _join(sep: str, items: list[str]) -> str:
    if isinstance(items, (list, tuple)) and all(isinstance(item, str) for item in items):
        check_length(sum(map(len, items)) + len(sep) * len(items))
        if any(type(each) is OwnText for each in (sep, *items)):
            return joined(sep, items)
    return sep.join(items)


def _format(value: Any, spec: str) -> str:
    check_length(_widest(spec))
    return format(value, spec)


def _widest(spec: str) -> int:
    """The largest number in a format specification: its width or precision."""
    digits = "".join(char if char.isdigit() else " " for char in spec)
    return max((int(number[:9]) for number in digits.split()), default=0)


_PLAIN = (
    "capitalize", "casefold", "count", "find", "index", "isalnum", "isalpha", "isascii",
    "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace",
    "istitle", "isupper", "lower", "lstrip", "removeprefix", "removesuffix", "rfind", "rindex",
    "rsplit", "rstrip", "split", "splitlines", "strip", "swapcase", "title", "upper",
)  # fmt: skip

TEXT_EVALUATORS: dict[str, Callable[..., Any]] = {
    **{name: _plainly(name) for name in _PLAIN},
    **{name: _padded(name) for name in ("center", "ljust", "rjust", "zfill")},
    **{name: _ends(name) for name in ("startswith", "endswith")},
    **{name: _part(name) for name in ("partition", "rpartition")},
    "chr": chr,
    "expandtabs": _expandtabs,
    "format": _format,
    "in": lambda needle, text: needle in text,
    "join": _join,
    "ord": ord,
    "repeat": _repeat,
    "replace": _replace,
    "repr": repr,
    "str": str,
}
