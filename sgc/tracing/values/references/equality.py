"""Which objects in a list are equal to one: `in`, `index`, `remove` and `count`."""

from __future__ import annotations

from typing import Any

from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.types import Type
from sgc.tracing.kinds.row_types import (
    NOTHING,
    TOLD,
    OptionalType,
    RefType,
    RowType,
    holds_references,
)
from sgc.tracing.values.abstract_number import AbstractNumber
from sgc.tracing.values.computing import computed
from sgc.tracing.values.references.as_data import found_rows
from sgc.tracing.values.references.fields import cells
from sgc.tracing.values.references.reference import class_of, is_of_rows, numbered, refuse
from sgc.tracing.values.references.unions import arms_of

_SCALARS = (types.TEXT, types.INT, types.BOOL, NOTHING)


def looked_for(fn: str, items: Any, one: Any) -> Any:
    """`has`, `where` or `n_of` of a list of objects, and an object."""
    session: Any = items.session
    type_ = items.item_type
    if type_ != RefType.to(class_of(one).__name__):
        refuse("an object is looked for in a list of other values")
    heap, number = session.heap, numbered(one)
    columns = [] if is_of_rows(class_of(one)) else _compared(heap, class_of(one))
    if is_of_rows(class_of(one)):
        items = found_rows(items, class_of(one), number)
    if columns:
        tests = [test for test, _ in columns]
        code = _ALIKE.format(names=_names(columns), test=" and ".join(tests))
        given = [each for _, symbols in columns for each in symbols]
        items = session.read(heap.computed(code, (items, number, *given), items.whole_type))
    heap.is_own = True
    try:
        return computed(session, fn, items, AbstractNumber(number, session))
    finally:
        heap.is_own = False


# The list, with the object itself in the place of each that is equal to it.
_ALIKE = (
    "def same(a, b):\n"
    "    if a != a and b != b:\n"
    "        raise ValueError('two objects with nan are compared, which may be one nan')\n"
    "    return a == b\n"
    "def piece(items, n, {names}):\n"
    "    return [n if k == n or ({test}) else k for k in items]"
)  # fmt: skip


def _names(columns: list[tuple[str, list[Symbol]]]) -> str:
    return ", ".join(f"c{n}" for n in range(sum(len(each) for _, each in columns)))


def _compared(heap: Any, of: type) -> list[tuple[str, list[Symbol]]]:
    """What the comparison of a class's objects compares: tests of the columns `c0`, `c1`… at `k`
    and `n`, with the columns; none if they are compared by what they are."""
    owner = next(base for base in of.__mro__ if "__eq__" in vars(base))
    if owner is object:
        return []
    fields = vars(owner).get("__dataclass_fields__")
    if fields is None or owner.__eq__.__code__.co_filename.endswith(".py"):
        refuse(f"objects of {of.__name__}, which has an __eq__ of its own, are looked for")
    return _tests(heap, of, [key for key, field in fields.items() if field.compare])


def _tests(heap: Any, of: type, keys: list[str]) -> list[tuple[str, list[Symbol]]]:
    found: list[tuple[str, list[Symbol]]] = []
    n = 0
    for key in keys:
        type_ = heap.fields_of(of)[key]
        test, symbols = _test(heap, of.__name__, key, type_, n)
        found.append((test, symbols))
        n += len(symbols)
    return found or [("True", [])]


def _test(heap: Any, name: str, key: str, type_: Type, n: int) -> tuple[str, list[Symbol]]:
    column = heap.columns[name, key]
    plain = type_.of if isinstance(type_, OptionalType) else type_
    if plain == types.FLOAT:  # Python finds one nan equal to itself, and no other
        return f"same(c{n}[k], c{n}[n])", [column]
    if plain in _SCALARS or isinstance(plain, RefType):
        if isinstance(plain, RefType):
            _refuse_equal(heap, plain)
        return f"c{n}[k] == c{n}[n]", [column]
    if isinstance(plain, (RowType, *TOLD)) and not _may_have(plain, types.FLOAT):
        return f"c{n}[k] == c{n}[n]", [column]
    if type_.item is None or type_.item not in _SCALARS:
        refuse(f"objects of {name} are looked for, whose attribute {key} is compared")
    held = f"c{n + 1}[c{n}[k]] == c{n + 1}[c{n}[n]]"
    return held, [column, heap.columns[heap.one(cells(name, key)), ""]]


def _may_have(type_: Type, part: Type) -> bool:
    """Whether a value of a type, or a part of it, may be of another, or an object."""
    if isinstance(type_, RowType):
        return any(_may_have(each, part) for each in type_.row)
    arms = arms_of(type_)
    if len(arms) > 1:
        return any(_may_have(each, part) for each in arms)
    return type_ == part or holds_references(type_)


def _refuse_equal(heap: Any, of: RefType) -> None:
    """Stops the trace at objects that are compared otherwise than by what they are."""
    kind = heap.class_named(of.name)
    if kind is None or kind.__eq__ is not object.__eq__:
        refuse("objects are looked for that hold others, which have an __eq__ of their own")
