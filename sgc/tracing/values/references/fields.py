"""The types of attributes of objects that references stand for, and what may be done with them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET
from sgc.ir import types
from sgc.ir.graph import Lit
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Kind, Type
from sgc.tracing.kinds.members import is_member
from sgc.tracing.kinds.row_types import (
    NOTHING,
    OBJECT,
    DictType,
    MemberType,
    OptionalType,
    RefType,
    RowType,
    UnionType,
    holds_references,
)
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.abstract_text import AbstractText
from sgc.tracing.values.items import type_of
from sgc.tracing.values.json.abstract_object import AbstractObject
from sgc.tracing.values.references.reference import (
    INSIDE,
    class_of,
    is_its_own,
    is_reference,
    refuse,
)
from sgc.tracing.values.references.unions import arms_of, covering

_SCALARS = (types.TEXT, types.INT, types.FLOAT, types.BOOL)
# Types of which nothing can be changed in the graph, or of which a run knows what holds them.
_ANY = {types.JSON, OBJECT}
_ALONE = (*_SCALARS, NOTHING, *_ANY)
_FORMS: dict[Any, str] = {dict: "dict", Counter: "Counter", set: "set"}
# What a `defaultdict` calls, by the form of its type.
FACTORIES = {f"default {of.__name__}": of for of in (list, dict, set, int, float, str, bool)}
PLAIN_CELLS = (list, defaultdict, *_FORMS)
LISTS_OF_ONE = (*PLAIN_CELLS, AbstractList)  # of which it must be known who else has them


LOCAL = "<variables>"  # in the place of a class, for cells that variables have


def cells(name: str, key: str) -> str:
    return f"{name}.{key}"


def inner(name: str) -> str:
    """The name of the lists and dicts that those of a name hold."""
    return name + INSIDE


def cell_part(type_: Type | None) -> Type | None:
    """The type of the list or dict that values of a type are, if they are one or None."""
    of = type_.of if isinstance(type_, OptionalType) else type_
    is_one = of is not None and (of.item is not None or isinstance(of, DictType))
    return of if is_one else None


def is_cell_type(type_: Type | None) -> bool:
    """Whether values of a type are lists or dicts, which have numbers, or None."""
    return cell_part(type_) is not None


def field_type(value: Any, name: str = "") -> Type:
    """The type of what an attribute is set to; of a list or dict, with those of what it holds.
    name: of the lists or dicts of the attribute."""
    if type(value) is list:
        found = [item_type(each, name) for each in value]
        return types.list_of(joined_all(name, found) or NOTHING)
    if type(value) in PLAIN_CELLS:
        return _dict_type(value, name)
    if is_cell(value):
        found_type: Type = value.layout_type
        return found_type
    if type(value) is AbstractList:
        return types.list_of(allowed(value.item_type))
    return code_type(value) or _plain_type(value)


def code_type(value: Any) -> DictType | None:
    """The type of a dict that code has given."""
    if not isinstance(value, AbstractObject):
        return None
    found: DictType | None = value.session.dict_type(value.symbol)
    return found


def _dict_type(value: Any, name: str) -> Type:
    form = _FORMS.get(type(value)) or f"default {_name_of(value.default_factory)}"
    if form not in FACTORIES and form not in _FORMS.values():
        refuse("a defaultdict of an attribute calls another function than a type's", INTERPRET)
    key = joined_all(name, [key_type(each) for each in value])
    if form == "set":
        return DictType.of(key, None, form)
    held = joined_all(name, [item_type(each, name) for each in value.values()])
    return DictType.of(key, held or default_type(form), form)


def _name_of(factory: Any) -> str:
    return next((of.__name__ for of in FACTORIES.values() if factory == of), "")


def default_type(form: str) -> Type | None:
    """The type of what a `defaultdict` or `Counter` gives for a key that it does not have."""
    if form == "Counter":
        return types.INT
    return field_type(FACTORIES[form]()) if form in FACTORIES else None


def key_type(key: Any) -> Type:
    """The type of a key of a dict."""
    found = _plain_type(key)
    if is_reference(key) and not is_its_own(class_of(key)):
        refuse("a key of a dict is an object with an __eq__ or __hash__ of its own", INTERPRET)
    if isinstance(found, RefType) or _may_be_key(found):
        return found
    refuse("a key of a dict of an attribute is neither text, number, bool nor object", INTERPRET)


def _may_be_key(type_: Type) -> bool:
    if isinstance(type_, RowType):
        return all(map(_may_be_key, type_.row))
    is_scalar = isinstance(type_, MemberType) or type_ in _SCALARS
    return is_scalar or (isinstance(type_, UnionType) and all(map(_may_be_key, type_.arms)))


def item_type(value: Any, name: str) -> Type:
    """The type of what is put into a list or dict of a name."""
    if is_cell(value):
        found_type: Type = value.layout_type
        is_there = value.name == value.session.heap.one(inner(name))
        return found_type if is_there else RefType.to(value.name)
    if type(value) in PLAIN_CELLS or type(value) is AbstractList:
        return field_type(value, inner(name))
    return code_type(value) or _plain_type(value)


def _plain_type(value: Any) -> Type:
    if isinstance(value, str) and type(value) not in (str, AbstractText) and not is_member(value):
        refuse(f"an attribute is a {type(value).__name__}, which would be a text", INTERPRET)
    return allowed(NOTHING if value is None else type_of(value))


def is_cell(value: Any) -> bool:
    """Whether a value stands for a list or dict of an attribute."""
    return isinstance(value, AbstractList) and value.is_cell


def allowed(type_: Type) -> Type:
    """A type, if nothing of it can be changed: what can be changed would have to be an object."""
    if type_.kind in TEXTUAL:
        return types.TEXT
    is_one = type_ in _ALONE or isinstance(type_, (RefType, MemberType))
    if isinstance(type_, RowType) and type_.keys is None:
        is_one = all(map(allowed, type_.row))
    if isinstance(type_, (OptionalType, UnionType)):
        is_one = all(map(allowed, arms_of(type_)))
    if not is_one:
        refuse("an attribute is neither text, number, bool, object, nor a list or dict", INTERPRET)
    return type_


class _Apart(Exception):
    """No type covers two types."""


def _apart(*types_: Type) -> NoReturn:
    """Raises _Apart; traces anew if rows can be of one class, or be none."""
    session: Any = current_session()
    session.heap.unite(types_)
    session.heap.give_up_rows(types_)
    raise _Apart


def joined_all(name: str, found: Iterable[Type]) -> Type | None:
    """The type that covers those of what a list or dict holds; None of nothing."""
    wider: Type | None = None
    try:
        for each in found:
            wider = _joined(wider, each)
    except _Apart:
        refuse(f"a list or dict of {name} has values of different types", INTERPRET)
    return wider


def _joined(known: Type | None, found: Type | None) -> Type | None:
    """The type that covers two; None is the type of what was never put anywhere."""
    if known is None or found is None or known == found:
        return known or found
    if isinstance(known, DictType) and isinstance(found, DictType):
        if known.form != found.form:
            raise _Apart
        key = _joined(known.key, found.key)
        if key is not None and NOTHING in arms_of(key):
            raise _Apart
        return DictType.of(key, _joined(known.value, found.value), known.form)
    if known.item is not None and found.item is not None:
        return types.list_of(_joined_items(known.item, found.item))
    if is_cell_type(known) or is_cell_type(found):
        return _joined_cells(known, found)
    wider = OBJECT if _ANY & {known, found} else covering((known, found))
    if wider is None or (wider == OBJECT and any(map(holds_references, (known, found)))):
        _apart(known, found)
    return wider


def _joined_cells(*types_: Type) -> Type:
    """The type of what is None or a list or dict."""
    parts = [cell_part(each) for each in types_ if each != NOTHING]
    is_optional = any(each == NOTHING or isinstance(each, OptionalType) for each in types_)
    if None in parts or not is_optional:
        _apart(*types_)
    wider: Type | None = None
    for each in parts:
        wider = _joined(wider, each)
    assert wider is not None
    return OptionalType(Kind.JSON, of=wider)


def _joined_items(known: Type, found: Type) -> Type:
    """The same of items; NOTHING is the type of those of an empty list."""
    if NOTHING in (known, found):
        return found if known == NOTHING else known
    wider = _joined(known, found)
    assert wider is not None
    return wider


def fit(known: Type | None, found: Type) -> bool:
    """Whether a type covers two."""
    try:
        return _joined(known, found) is not None
    except _Apart:
        return False


def joined(name: str, key: str, known: Type | None, found: Type) -> Type:
    if known in _ANY and is_cell_type(found):
        return found  # a value of any type is refused there from now on
    try:
        wider = _joined(known, found)
    except _Apart:
        wider = None
    if wider is None:
        refuse(f"the attribute {key} of {name} has values of different types", INTERPRET)
    return wider


def joined_inside(known: Type, depth: int, found: Type) -> Type:
    """A type in which what is so deep inside covers another one, too. Raises no error: what does
    not go together is refused by `joined`."""
    if depth == 0:
        return found
    if isinstance(known, OptionalType):
        return OptionalType(Kind.JSON, of=joined_inside(known.of, depth, found))
    if isinstance(known, DictType):
        assert known.value is not None
        value = joined_inside(known.value, depth - 1, found)
        return DictType.of(known.key, value, known.form)
    assert known.item is not None
    return types.list_of(joined_inside(known.item, depth - 1, found))


# -- what may be done with references -----------------------------------------------------------

_LISTS = frozenset({
    "insert", "item", "keys", "len", "plus", "push", "put", "slice", "times", "truth", "values",
    "without",
})  # fmt: skip


def refuse_references(op: str, fields: Mapping[str, Any], types_: Iterable[Type | None]) -> None:
    """Stops the trace at what would take the number of an object for a value."""
    found = [each for each in types_ if each is not None and holds_references(each)]
    if not found or op in ("list", "record"):
        return
    if op in ("compute", "attempt") and _is_fine(fields["fn"].value, fields["args"], found):
        return
    session: Any = current_session()
    session.heap.give_up_rows(found)
    refuse("an object known only at run time is used otherwise than by its attributes", INTERPRET)


def _is_fine(fn: str, args: Any, found: list[Type]) -> bool:
    if fn in ("is_a", "as"):
        return args[1] in (Lit("NoneType"), Lit("int"))
    if fn == "eq":
        return all(isinstance(each, RefType) for each in found)
    if fn == "truth":
        return found[0].item is not None or isinstance(found[0], DictType)
    if fn == "has":
        return isinstance(found[0], DictType)
    return fn in _LISTS
