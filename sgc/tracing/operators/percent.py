"""`template % values` with abstract values.

CPython's own formatting would cut and pad markers. Each conversion becomes a `format` of its value.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sgc.core.stops import INTERPRET, stop
from sgc.ir.types import Kind
from sgc.tracing.operators.calls import KNOWING
from sgc.tracing.operators.texts import is_plain, text
from sgc.tracing.values.abstract import AbstractJson, AbstractText, is_abstract
from sgc.tracing.values.abstract_number import AbstractNumber
from sgc.tracing.values.json.abstract_object import AbstractObject
from sgc.tracing.values.text_methods import stand_in

_CONVERSION = re.compile(
    r"%(?:\((?P<key>[^()]*)\))?(?P<flags>[#0\- +]*)(?P<width>\*|\d+)?"
    r"(?:\.(?P<precision>\*|\d*))?[hlL]?(?P<kind>.)",
    re.DOTALL,
)
_WHOLE = "diuxXo"
_REAL = "eEfFgG"


def modulo(left: Any, right: Any) -> Any:
    """`left % right`."""
    left = text(left)
    if not is_plain(left, "__mod__") or not any(map(is_abstract, _values(right))):
        return text(left % right)
    if not _CONVERSION.search(left):
        _refuse(left)
    kinds = {found["kind"] for found in _CONVERSION.finditer(left)}
    if not kinds <= {*"sr%"} and any(isinstance(each, AbstractJson) for each in _values(right)):
        _refuse(left)
    left = str.__str__(left)
    left % _mapped(right)  # raises what Python would
    return text("".join(_filled(left, right)))


def _modulo_of(self: AbstractText, template: Any) -> Any:
    """`template % self`; Python calls this first, as the class derives from the template's."""
    return modulo(template, self) if isinstance(template, str) else NotImplemented


KNOWING[operator.mod] = modulo
setattr(AbstractText, "__rmod__", _modulo_of)  # noqa: B010


def _values(given: Any) -> Any:
    if isinstance(given, tuple):
        return given
    return given.values() if type(given) is dict else (given,)


def _mapped(given: Any) -> Any:
    """Plain stand-ins of the same types as the values."""
    if isinstance(given, tuple):
        return tuple(map(_plainly, given))
    return {k: _plainly(v) for k, v in given.items()} if type(given) is dict else _plainly(given)


def _plainly(value: Any) -> Any:
    return "a" if isinstance(value, AbstractJson) else stand_in(value)


def _filled(template: str, given: Any) -> Iterator[str]:
    """The parts of the result in order, as texts with markers."""
    values = iter(given if isinstance(given, tuple) else (given,))
    at = 0
    for found in _CONVERSION.finditer(template):
        yield template[at : found.start()]
        at = found.end()
        if found["kind"] == "%":
            yield "%"
            continue
        width, precision = (
            next(values) if found[name] == "*" else found[name] for name in ("width", "precision")
        )
        if found["key"] is not None and isinstance(given, Mapping):
            value = given[found["key"]]
        else:
            value = next(values)
        yield _one(found, width, precision, value)
    yield template[at:]


def _one(found: re.Match[str], width: Any, precision: Any, value: Any) -> str:
    if is_abstract(width) or is_abstract(precision):
        stop("a width in % known only at run time", "write it as a number")
    flags, kind = found["flags"], found["kind"]
    width = "" if width is None else str(width)
    if width.startswith("-"):
        flags, width = flags + "-", width[1:]
    dotted = "" if precision is None else f".{precision or 0}"
    if not is_abstract(value):
        plain: str = f"%{flags}{width}{dotted}{kind}" % (value,)
        return plain
    if kind in "sr":
        shown = text(repr(value)) if kind == "r" else _shown(value)
        spec = (("<" if "-" in flags else ">") + width if width else "") + dotted
        return format(shown, spec) if spec else str.__str__(shown)
    if not _is_number(kind, value) or ("#" in flags and kind in _REAL):
        _refuse(found[0])
    if kind in _WHOLE and dotted:
        _refuse(found[0])
    sign = "+" if "+" in flags else " " if " " in flags else ""
    sign += "#" if "#" in flags else ""
    align = "<" if "-" in flags else ""
    zero = "0" if "0" in flags and not align and width else ""
    return format(value, f"{align}{sign}{zero}{width}{dotted}{'d' if kind in 'iu' else kind}")


def _shown(value: Any) -> Any:
    """`str(value)`; an object's `__format__` may give another text."""
    if isinstance(value, AbstractObject) and value.may_be_users:
        return value.shown_as_text()
    return text(f"{value}")


def _is_number(kind: str, value: Any) -> bool:
    if not isinstance(value, AbstractNumber):
        return False
    return kind in _REAL or (kind in _WHOLE and value.symbol.type.kind is not Kind.FLOAT)


def _refuse(conversion: str) -> None:
    stop(
        f"{conversion!r} of a value known only at run time",
        hint="write an f-string with a format specification; or " + INTERPRET,
    )
