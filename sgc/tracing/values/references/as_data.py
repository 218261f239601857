"""`asdict` and `astuple` of objects that references stand for: code that reads their columns.

What they give is new: dicts, lists and tuples of the texts and numbers that the objects have now.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET
from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.types import Type
from sgc.tracing.kinds.row_types import (
    NOTHING,
    OBJECT,
    TOLD,
    DictType,
    OptionalType,
    RefType,
    RowType,
)
from sgc.tracing.values.abstract_number import AbstractNumber
from sgc.tracing.values.references.fields import cells, inner, is_cell_type
from sgc.tracing.values.references.reference import class_of, numbered, refuse

_SCALARS = (types.TEXT, types.INT, types.FLOAT, types.BOOL)


def as_dict(reference: Any) -> dict[str, Any]:
    """`asdict(reference)`, whose keys are known."""
    names = _fields(class_of(reference))
    return dict(zip(names, _parts(reference, names, is_dict=True), strict=True))


def as_tuple(reference: Any) -> tuple[Any, ...]:
    """`astuple(reference)`, whose length is known."""
    return tuple(_parts(reference, _fields(class_of(reference)), is_dict=False))


def _is_dataclass(of: type) -> bool:
    return dataclasses.is_dataclass(of)


def _fields(of: type) -> list[str]:
    return [each.name for each in dataclasses.fields(of)]  # type: ignore[arg-type]


def _parts(reference: Any, names: Sequence[str], is_dict: bool) -> list[Any]:
    session: Any = current_session()
    heap, number = session.heap, AbstractNumber(numbered(reference), session)
    found = []
    for name in names:
        type_ = _type_of(heap, class_of(reference), name)
        if _is_plain(type_):
            found.append(heap.read(reference, name))
            continue
        code = _Code(heap, is_dict)
        value = code.of_field(class_of(reference), name, "n")
        made = heap.computed(code.text(value), (number, *code.columns), _given_type(type_))
        found.append(session.read(made))
    return found


def _type_of(heap: Any, of: type, name: str) -> Type:
    found: Type | None = heap.fields_of(of).get(name)
    if found is None:
        refuse(f"an object of {of.__name__} may have no {name}", INTERPRET)
    return found


def _is_plain(type_: Type) -> bool:
    plain = type_.of if isinstance(type_, OptionalType) else type_
    is_row = isinstance(plain, RowType) and all(map(_is_plain, plain.row))
    is_told = isinstance(plain, TOLD)
    return plain in _SCALARS or plain == NOTHING or is_row or is_told


def _given_type(type_: Type) -> Type:
    """The type of what a list or object becomes."""
    item = type_.item
    return OBJECT if item is None else types.list_of(item if _is_plain(item) else OBJECT)


class _Code:
    """Code that makes data of objects and their lists and dicts, and the columns that it reads."""

    def __init__(self, heap: Any, is_dict: bool) -> None:
        self._heap, self._is_dict = heap, is_dict
        self.columns: list[Symbol] = []
        self._functions: dict[str, str] = {}
        self._n = 0

    def text(self, value: str) -> str:
        params = ", ".join(["n", *(f"c{n}" for n in range(len(self.columns)))])
        functions = "".join(self._functions.values())
        return f"def piece({params}):\n{functions}    return {value}"

    def of_field(self, of: type, name: str, number: str) -> str:
        """The expression of an object's attribute."""
        type_ = _type_of(self._heap, of, name)
        of_cells = cells(of.__name__, name)
        return self._value(type_, of_cells, f"{self._column(of.__name__, name)}[{number}]")

    def _column(self, name: str, key: str) -> str:
        symbol = self._heap.columns[name, key]
        if symbol not in self.columns:
            self.columns.append(symbol)
        return f"c{self.columns.index(symbol)}"

    def _fresh(self) -> str:
        self._n += 1
        return f"x{self._n}"

    def _value(self, type_: Type, name: str, value: str) -> str:
        """The expression of a value. name: of the cells of lists and dicts of its place."""
        if isinstance(type_, OptionalType):
            x = self._fresh()
            found = f"None if {x} is None else {self._value(type_.of, name, x)}"
            return f"[{found} for {x} in [{value}]][0]"
        if is_cell_type(type_):
            return self._cell(name, value)
        if isinstance(type_, RefType):
            return self._referred(type_, value)
        if isinstance(type_, RowType) and not _is_plain(type_):
            x = self._fresh()
            row = (self._value(each, name, f"{x}[{n}]") for n, each in enumerate(type_.row))
            return f"[({', '.join(row)},) for {x} in [{value}]][0]"
        return value

    def _referred(self, type_: RefType, value: str) -> str:
        if "." in type_.name:
            return self._cell(type_.name, value)
        of: type | None = self._heap.class_named(type_.name)
        if of is None or not _is_dataclass(of):
            refuse(f"asdict of an object with one of {type_.name}, which it would copy", INTERPRET)
        function = f"of_{type_.name}"
        if function not in self._functions:
            self._functions[function] = ""  # an object may have others of its class
            names = _fields(of)
            parts = [self.of_field(of, name, "k") for name in names]
            pairs = ", ".join(f"{k!r}: {v}" for k, v in zip(names, parts, strict=True))
            made = f"{{{pairs}}}" if self._is_dict else f"({''.join(f'{v}, ' for v in parts)})"
            self._functions[function] = f"    def {function}(k):\n        return {made}\n"
        return f"{function}({value})"

    def _cell(self, name: str, number: str) -> str:
        """The expression of a list or dict."""
        type_ = self._heap.type_at(name)
        value = f"{self._column(name, '')}[{number}]"
        if isinstance(type_, DictType):
            return self._dict(type_, name, value)
        x = self._fresh()
        return f"[{self._value(type_.item or NOTHING, inner(name), x)} for {x} in {value}]"

    def _dict(self, type_: DictType, name: str, value: str) -> str:
        if type_.form != "dict" or (type_.key is not None and not _is_plain(type_.key)):
            refuse(f"asdict of an object with a {type_.form}, which it would copy", INTERPRET)
        k, x = self._fresh(), self._fresh()
        held = self._value(type_.value or NOTHING, inner(name), x)
        return f"{{{k}: {held} for {k}, {x} in {value}.items()}}"
