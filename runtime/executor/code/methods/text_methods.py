"""Methods of texts: Python's own, with a check of a result's size before it is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sgc.runtime.executor.code.fuel import charge, checked, text_cost
from sgc.runtime.executor.code.iterators import drained, is_iterable
from sgc.runtime.executor.code.methods.attributes import METHODS, OF_TYPES, bounded_method
from sgc.runtime.executor.code.methods.comparing import find_cost
from sgc.runtime.executor.code.methods.formatting import check_encoding, format_map, format_text
from sgc.runtime.executor.interface.value_limits import (
    MAX_ITEMS,
    check_bits,
    check_items,
    check_length,
)

Method = Callable[..., Any]


def _whole(text: str, *args: Any, **kwargs: Any) -> None:
    """Charges for reading each character."""
    charge(1 + (len(text) >> 5))


def _padded(text: str, width: Any = 0, *args: Any) -> None:
    if isinstance(width, int):
        check_length(max(len(text), width))


def _tabs(text: str, tabsize: Any = 8) -> None:
    if isinstance(tabsize, int):
        check_length(len(text) + text.count("\t") * max(tabsize, 0))


def _finds(backward: bool) -> Method:
    def before(text: str, sought: Any = "", *args: Any, **kwargs: Any) -> None:
        if isinstance(sought, str):
            charge(find_cost(len(text), len(sought), backward))

    return before


def _strips(text: str, chars: Any = None, *args: Any) -> None:
    n_chars = len(chars) if isinstance(chars, str) else 1
    charge(len(text) * n_chars >> 9)


def _ends(text: str, ends: Any = "", *args: Any) -> None:
    charge(len(ends) >> 2 if isinstance(ends, tuple) else 0)


def _replaces(text: str, old: Any = "", new: Any = "", count: Any = -1, *args: Any) -> None:
    if not (isinstance(old, str) and isinstance(new, str) and isinstance(count, int)):
        return
    charge(find_cost(len(text), len(old)))
    found = text.count(old)
    n = found if count < 0 else min(count, found)
    charge((len(text) >> 6) + (n >> 2))
    check_length(len(text) + n * (len(new) - len(old)))


def _translates(text: str, table: Any = None, *args: Any) -> None:
    charge(len(text) >> 2)
    if isinstance(table, dict):
        longest = max((len(each) for each in table.values() if isinstance(each, str)), default=1)
        check_length(len(text) * max(longest, 1))


def _encodes(text: str, encoding: Any = "utf-8", errors: Any = "strict") -> None:
    check_encoding(encoding)
    charge(len(text) >> 4)


def _decodes(text: bytes, encoding: Any = "utf-8", errors: Any = "strict") -> None:
    check_encoding(encoding)
    charge(len(text) >> 4)


def _parts(value: Any) -> Any:
    """Returns the parts of a text that was split, checked and charged."""
    check_items(len(value))
    charge(len(value) + (sum(map(len, value)) >> 6))
    return value


def _splits(name: str) -> Method:
    real = getattr(str, name)
    backward = name == "rsplit"

    def split(*args: Any, **kwargs: Any) -> Any:
        if not args or not isinstance(args[0], str):
            return real(*args, **kwargs)
        text, given = args[0], dict(zip(("sep", "maxsplit"), args[1:], strict=False))
        sep, most = (
            given.get("sep", kwargs.get("sep")),
            given.get("maxsplit", kwargs.get("maxsplit", -1)),
        )
        charge(find_cost(len(text), len(sep) if isinstance(sep, str) else 1, backward))
        if len(text) <= MAX_ITEMS or len(args) > 3 or not isinstance(most, int):
            return _parts(real(*args, **kwargs))
        real("", *args[1:], **kwargs)
        return _parts(real(text, sep, most if 0 <= most < MAX_ITEMS else MAX_ITEMS))

    return split


def _splitlines(*args: Any, **kwargs: Any) -> Any:
    if args and isinstance(args[0], str) and len(args[0]) > MAX_ITEMS:
        ends = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
        check_items(sum(map(args[0].count, ends)) + 1)
    return _parts(str.splitlines(*args, **kwargs))


def _join(*args: Any) -> str:
    if len(args) != 2 or not isinstance(args[0], str):
        return str.join(*args)
    separator, items = args
    if not is_iterable(items):
        return str.join(separator, items)
    parts = drained(items)
    if type(parts) is not str and set(map(type, parts)) <= {str}:
        check_length(sum(map(len, parts)) + len(separator) * len(parts))
    elif type(parts) is str:
        check_length(len(parts) * (1 + len(separator)))
    result: str = checked(separator.join(parts))
    charge(len(parts) >> 2)
    return result


def _table(names: str, before: Method | None, after: Any) -> dict[str, Method]:
    return {name: bounded_method(str, name, before, after) for name in names.split()}


METHODS[str] = {
    **_table("isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable "
             "isspace istitle isupper", _whole, None),
    **_table("capitalize casefold lower swapcase title upper", lambda text, *args: charge(
        1 + (len(text) >> 3)), checked),
    **_table("center ljust rjust zfill", _padded, checked),
    **_table("expandtabs", _tabs, checked),
    **_table("count find index", _finds(False), None),
    **_table("rfind rindex", _finds(True), None),
    **_table("partition", _finds(False), _parts),
    **_table("rpartition", _finds(True), _parts),
    **_table("strip lstrip rstrip", _strips, checked),
    **_table("removeprefix removesuffix", None, checked),
    **_table("startswith endswith", _ends, None),
    **_table("replace", _replaces, checked),
    **_table("translate", _translates, checked),
    **_table("encode", _encodes, checked),
    "split": _splits("split"),
    "rsplit": _splits("rsplit"),
    "splitlines": _splitlines,
    "join": _join,
    "format": lambda text, /, *args, **kwargs: format_text(text, *args, **kwargs),
    "format_map": lambda text, mapping, /: format_map(text, mapping),
}  # fmt: skip
METHODS[bytes] = {
    "decode": bounded_method(bytes, "decode", _decodes, checked),
    "hex": bounded_method(bytes, "hex", None, checked),
    **{name: bounded_method(bytes, name) for name in ("startswith", "endswith")},
    "strip": bounded_method(bytes, "strip", None, checked),
}


def _maketrans(*args: Any) -> Any:
    for each in args:
        charge(len(each) if hasattr(type(each), "__len__") else 1)
    return str.maketrans(*args)


OF_TYPES[str] = {"maketrans": _maketrans}
OF_TYPES[bytes] = {"fromhex": bytes.fromhex}


def text_to_int(*args: Any, **kwargs: Any) -> int:
    """`int(...)`."""
    charge(2)
    if args and type(args[0]) is str:
        charge(text_cost(args[0]) + (len(args[0]) >> 4))
        if len(args[0]) > 20_000:
            check_bits(4.0 * len(args[0]))
    result: int = checked(int(*args, **kwargs))
    return result
