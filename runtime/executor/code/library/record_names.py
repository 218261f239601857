"""Names of `datetime`, `csv`, `io` and `ast`."""

from __future__ import annotations

import ast
import csv
import datetime
import io
import re
from collections.abc import Callable, Iterator
from typing import Any

from sgc.runtime.executor.code.fuel import MAPPINGS, NotAllowed, charge, checked, measure
from sgc.runtime.executor.code.iterators import drained, is_iterable, nested, source, taken
from sgc.runtime.executor.code.methods.attributes import (
    DATA,
    GUARDS,
    METHODS,
    OF_TYPES,
    bounded_method,
)
from sgc.runtime.executor.code.methods.operators import check_shown
from sgc.runtime.executor.interface.value_limits import LimitExceeded, check_length

# Each field may occur once in a format, and a row of spaces counts as one: so a format of this
# length is compared with a text in time linear in the text's length.
MAX_FORMAT = 80

_DATE = [
    "ctime",
    "isocalendar",
    "isoformat",
    "isoweekday",
    "replace",
    "strftime",
    "toordinal",
    "weekday",
]
_TIME = ["dst", "isoformat", "replace", "strftime", "tzname", "utcoffset"]
_CLASSES: dict[Any, tuple[list[str], str, list[str]]] = {
    datetime.date: (_DATE, "day month year", ["fromisocalendar", "fromisoformat", "fromordinal"]),
    datetime.datetime: (
        [*_DATE, *_TIME, "date", "time"],
        "day fold hour microsecond minute month second tzinfo year",
        ["combine", "fromisocalendar", "fromisoformat", "fromordinal", "strptime"],
    ),
    datetime.time: (_TIME, "fold hour microsecond minute second tzinfo", ["fromisoformat"]),
    datetime.timedelta: (["total_seconds"], "days microseconds seconds", []),
    datetime.timezone: (["tzname", "utcoffset"], "", []),
}


def _pays(*args: Any, **kwargs: Any) -> None:
    for each in (*args[1:], *kwargs.values()):
        if isinstance(each, str):
            check_length(len(each) << 8)
            charge(16 + (len(each) << 2))


def _strptime(kind: Any) -> Callable[..., Any]:
    def strptime(*args: Any) -> Any:
        text, form = (*args, None, None)[:2]
        if isinstance(form, str) and len(form) > MAX_FORMAT:
            raise LimitExceeded(f"strptime takes formats of at most {MAX_FORMAT} characters")
        charge(20_000 + (len(text) << 2 if isinstance(text, str) else 0))
        return kind.strptime(*args)

    return strptime


for _kind, (_methods, _data, _made) in _CLASSES.items():
    METHODS[_kind] = {name: bounded_method(_kind, name, _pays) for name in _methods}
    DATA[_kind] = frozenset(_data.split())
    OF_TYPES[_kind] = {name: getattr(_kind, name) for name in [*_made, "min", "max"]}
OF_TYPES[datetime.datetime]["strptime"] = _strptime(datetime.datetime)
OF_TYPES[datetime.timezone]["utc"] = datetime.UTC
DATA[type(datetime.date(1, 1, 1).isocalendar())] = frozenset({"week", "weekday", "year"})
DATETIME: dict[str, Any] = {
    name: getattr(datetime, name) for name in ("date", "datetime", "time", "timedelta", "timezone")
}


def _string_io(*args: Any, **kwargs: Any) -> io.StringIO:
    for each in args:
        charge(16 + (len(each) >> 4 if isinstance(each, str) else 0))
    return io.StringIO(*args, **kwargs)


def _writes(file: Any, text: Any = "", *args: Any) -> None:
    if isinstance(text, str):
        check_length(file.tell() + len(text))
        charge(1 + (len(text) >> 4))


def _reads(file: Any, *args: Any) -> None:
    charge(4)


def _sum_of(value: Any) -> Any:
    for each in value if isinstance(value, list) else [value]:
        checked(each)
    return value


METHODS[io.StringIO] = {
    **{name: bounded_method(io.StringIO, name, _reads, _sum_of)
       for name in ("close", "getvalue", "read", "readline", "readlines")},
    "write": bounded_method(io.StringIO, "write", _writes),
}  # fmt: skip
GUARDS[io.StringIO] = _string_io
IO: dict[str, Any] = {"StringIO": io.StringIO}


def _paid(line: Any) -> Any:
    charge(4 + (len(line) if isinstance(line, str) else 0))
    return line


def _lines(items: Any) -> Iterator[Any]:
    return map(_paid, items)


def _options(kwargs: dict[str, Any]) -> None:
    for name, value in kwargs.items():
        if not isinstance(value, (str, int, type(None))):
            raise NotAllowed(f"csv with {name} that is no text is not allowed in a graph's code")


def _reader(lines: Any, **kwargs: Any) -> Any:
    _options(kwargs)
    return nested(csv.reader(nested(_lines(source(lines)), lines), **kwargs), lines)


def _dict_reader(lines: Any, fieldnames: Any = None, **kwargs: Any) -> Any:
    _options(kwargs)
    names = None if fieldnames is None else list(drained(fieldnames))
    made = csv.DictReader(nested(_lines(source(lines)), lines), names, **kwargs)
    return nested(made, lines)


def _writer(file: Any, **kwargs: Any) -> Any:
    _options(kwargs)
    if type(file) is not io.StringIO:
        raise NotAllowed("csv.writer takes a StringIO in a graph's code")
    charge(16)
    return csv.writer(file, **kwargs)


_WRITER = type(csv.writer(io.StringIO()))


def _row(row: Any) -> Any:
    if not is_iterable(row):
        return row
    found = drained(row)
    check_length(measure(found))
    check_shown(found)
    return found


def _writerow(*args: Any) -> Any:
    n_chars = _WRITER.writerow(args[0], *map(_row, args[1:]))
    charge(4 + (n_chars >> 3))
    return n_chars


def _writerows(*args: Any) -> None:
    for rows in args[1:2]:
        for row in taken(rows) if is_iterable(rows) else rows:
            _writerow(args[0], row)


def _dict_writer(
    file: Any, fieldnames: Any, restval: Any = "", extrasaction: Any = "raise", **kwargs: Any
) -> csv.DictWriter[Any]:
    _options(kwargs | {"extrasaction": extrasaction})
    if type(fieldnames) not in _FIELDNAMES:
        raise NotAllowed("csv.DictWriter takes a list of names in a graph's code")
    made = csv.DictWriter(io.StringIO(), fieldnames, restval, extrasaction)
    made.writer = _writer(file, **kwargs)
    return made


_FIELDNAMES: tuple[type, ...] = (list, tuple, dict, type({}.keys()))  # no iterator: used up at once


def _write_dict(*args: Any) -> Any:
    made, row = args
    if type(row) not in MAPPINGS:
        raise NotAllowed("csv.DictWriter writes dicts in a graph's code")
    charge(4 + len(row) + len(made.fieldnames))
    if made.extrasaction == "raise" and (wrong := [k for k in row if k not in made.fieldnames]):
        check_shown(wrong)
    return _writerow(made.writer, made._dict_to_list(row))


def _write_dicts(*args: Any) -> None:
    made, rows = args
    for row in taken(rows):
        _write_dict(made, row)


METHODS[csv.DictWriter] = {
    "writeheader": lambda made: _writerow(made.writer, made.fieldnames),
    "writerow": _write_dict,
    "writerows": _write_dicts,
}
DATA[csv.DictWriter] = frozenset({"fieldnames"})
METHODS[_WRITER] = {"writerow": _writerow, "writerows": _writerows}
DATA[csv.DictReader] = frozenset({"fieldnames", "line_num"})
DATA[type(csv.reader([]))] = frozenset({"line_num"})
CSV: dict[str, Any] = {
    "DictReader": _dict_reader,
    "DictWriter": _dict_writer,
    "reader": _reader,
    "writer": _writer,
}

_SHORT = 1000
_TEXTS = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""", re.DOTALL)
# Syntax that makes a tree deep without nested brackets: operators, calls, subscripts, attributes.
_DEEP = re.compile(
    r"[^\w\s\[\](){},:.+-]|[\])}]\s*[\[(.]|[-+]\s*[-+]|[\w\])}]\s*[-+]|\w\s*[\[(]|[a-zA-Z_]\s*\."
)


def _literal_eval(text: Any) -> Any:
    """`ast.literal_eval` of a text whose tree is no deeper than its nested brackets."""
    if not isinstance(text, str):
        raise ValueError(f"malformed node or string: {text!r}")
    check_length(50 * len(text))
    charge(20 + 2 * len(text))
    if len(text) > _SHORT and _DEEP.search(_TEXTS.sub("''", text)):
        raise LimitExceeded("a long literal may hold texts, numbers and brackets alone")
    try:
        return checked(ast.literal_eval(text))
    except ValueError as error:
        # Python's message contains an address, which differs from run to run.
        raise ValueError(str(error).partition(" object at 0x")[0]) from None


AST: dict[str, Any] = {"literal_eval": _literal_eval}
