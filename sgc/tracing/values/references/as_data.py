"""`asdict` and `astuple` of objects that references stand for, and rows as data: code that reads
their columns.

What they give is new: dicts, lists and tuples of the texts and numbers that the objects have now.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from operator import is_
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
    StateType,
)
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.abstract_number import AbstractNumber
from sgc.tracing.values.references.fields import cells, inner, is_cell_type
from sgc.tracing.values.references.reference import (
    OTHERS,
    class_of,
    count_of,
    field_of,
    is_cell_name,
    is_of_rows,
    is_open,
    is_reference,
    keys_of,
    numbered,
    refuse,
)

_SCALARS = (types.TEXT, types.INT, types.FLOAT, types.BOOL)


def as_dict(reference: Any) -> dict[str, Any]:
    """`asdict(reference)`, whose keys are known."""
    names = _fields(class_of(reference))
    return dict(zip(names, _parts(reference, names, is_dict=True), strict=True))


def as_tuple(reference: Any) -> tuple[Any, ...]:
    """`astuple(reference)`, whose length is known."""
    return tuple(_parts(reference, _fields(class_of(reference)), is_dict=False))


def data_of(value: Any) -> Any:
    """A value with dicts in the place of the rows that it is or holds, and lists and dicts in the
    place of their numbers; itself if it holds none."""
    session: Any = current_session()
    if isinstance(value, Symbol):
        is_one = value.type.item is not None and _holds_rows(value.type, session.heap)
        return data_of(session.read(value)) if is_one else value
    if is_reference(value):
        return _row_data(value, session) if is_of_rows(class_of(value)) else value
    if isinstance(value, AbstractList):
        type_ = value.whole_type
        return value if not _holds_rows(type_, session.heap) else _coded(value, type_, session)
    if type(value) not in (list, tuple, dict):
        return value
    parts = value.values() if type(value) is dict else value
    found = [*map(data_of, parts)]
    if all(map(is_, found, parts)):
        return value
    return dict(zip(value, found, strict=True)) if type(value) is dict else type(value)(found)


def _row_data(row: Any, session: Any) -> Any:
    of, heap = class_of(row), session.heap
    if not heap.late_keys(of.__name__) and not is_open(of):
        return dict(zip(keys_of(of), _parts(row, _fields(of), is_dict=True), strict=True))
    number = AbstractNumber(numbered(row), session)
    return _coded(number, RefType.to(of.__name__), session)


def _holds_rows(type_: Type | None, heap: Any) -> bool:
    if isinstance(type_, RefType):
        of = heap.class_named(type_.name)
        return is_cell_name(type_.name) if of is None else is_of_rows(of)
    if isinstance(type_, OptionalType):
        return _holds_rows(type_.of, heap)
    if isinstance(type_, DictType):
        return _holds_rows(type_.value, heap)
    if isinstance(type_, RowType):  # streams are no data
        is_data = not isinstance(type_, StateType)
        return is_data and any(_holds_rows(each, heap) for each in type_.row)
    return type_ is not None and _holds_rows(type_.item, heap)


def _coded(value: Any, type_: Type, session: Any) -> Any:
    code = _Code(session.heap, is_dict=True)
    given = value.value() if isinstance(type_, DictType) else value
    made = code.of_value(type_, "n")
    of = OBJECT if type_.item is None else types.list_of(OBJECT)
    return session.read(session.heap.computed(code.text(made), (given, *code.columns), of))


def found_rows(items: Any, of: type, number: Any) -> Any:
    """A list of rows with one of them in the place of each that is equal to it."""
    heap, type_ = items.session.heap, RefType.to(of.__name__)
    code = _Code(heap, is_dict=True)
    one, other = code.of_value(type_, "k"), code.of_value(type_, "n")
    text = code.text(f"[n if k == n or {one} == {other} else k for k in items]", "items")
    made = heap.computed(text, (number, *code.columns, items), items.whole_type)
    return items.session.read(made)


def _is_dataclass(of: type) -> bool:
    return dataclasses.is_dataclass(of)


def _fields(of: type) -> list[str]:
    if is_of_rows(of):
        return [field_of(key) for key in keys_of(of)]
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
        self._named: dict[str, str] = {}  # the functions of classes
        self._n = 0

    def text(self, value: str, *more: str) -> str:
        params = ", ".join(["n", *(f"c{n}" for n in range(len(self.columns))), *more])
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
            keys = range(len(type_.row)) if type_.keys is None else type_.keys
            row = [
                self._value(each, name, f"{x}[{key!r}]")
                for key, each in zip(keys, type_.row, strict=True)
            ]
            made = f"({', '.join(row)},)"
            if type_.keys is not None:
                pairs = zip(type_.keys, row, strict=True)
                made = f"{{{', '.join(f'{key!r}: {each}' for key, each in pairs)}}}"
            return f"[{made} for {x} in [{value}]][0]"
        return value

    def of_value(self, type_: Type, value: str) -> str:
        """The expression of a value that is no attribute's: its lists and dicts have no numbers."""
        x, y = self._fresh(), self._fresh()
        if type_.item is not None:
            return f"[{self.of_value(type_.item, x)} for {x} in {value}]"
        if isinstance(type_, DictType):
            held = self.of_value(type_.value or NOTHING, y)
            return f"{{{x}: {held} for {x}, {y} in {value}.items()}}"
        return self._value(type_, "", value)

    def _referred(self, type_: RefType, value: str) -> str:
        if is_cell_name(type_.name):
            return self._cell(type_.name, value)
        of: type | None = self._heap.class_named(type_.name)
        if of is None or not (_is_dataclass(of) or is_of_rows(of)):
            refuse(f"asdict of an object with one of {type_.name}, which it would copy", INTERPRET)
        if type_.name not in self._named:
            function = f"of_{len(self._named)}"
            self._named[type_.name] = function  # an object may have others of its class
            made = self._made(of)
            self._functions[function] = f"    def {function}(k):\n        return {made}\n"
        return f"{self._named[type_.name]}({value})"

    def _made(self, of: type) -> str:
        """The expression of what an object `k` of a class has."""
        names = _fields(of)
        parts = [self.of_field(of, name, "k") for name in names]
        if not self._is_dict:
            return f"({''.join(f'{v}, ' for v in parts)})"
        pairs = [] if not is_open(of) else [f"**{self.of_field(of, OTHERS, 'k')}"]
        pairs += [
            f"{k!r}: {v}"
            for k, v in zip(keys_of(of) if is_of_rows(of) else names, parts, strict=True)
        ]
        late = self._heap.late_keys(of.__name__)
        if late:
            n, k, v = self._fresh(), self._fresh(), self._fresh()
            found = " + ".join(self._late(of, key) for key in late)
            pairs.append(f"**{{{k}: {v} for {n}, {k}, {v} in sorted({found})}}")
        return f"{{{', '.join(pairs)}}}"

    def _late(self, of: type, key: str) -> str:
        """The expression of a list with a later key of a row `k`, after its count; empty if it was
        not set."""
        count = f"{self._column(of.__name__, count_of(key))}[k]"
        value = self.of_field(of, field_of(key), "k")
        return f"[({count}, {key!r}, {value}) for {self._fresh()} in [0] if {count}]"

    def _cell(self, name: str, number: str) -> str:
        """The expression of a list or dict."""
        name = self._heap.one(name)
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
