"""Sets and dicts of lists that are known only at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.ir.graph import Lit
from sgc.ir.op_specs import TEXTUAL
from sgc.ir.types import Kind, Type
from sgc.tracing.kinds.row_types import OBJECT, RowType
from sgc.tracing.operators.calls import KNOWING
from sgc.tracing.values.abstract import AbstractJson, AbstractList, AbstractObject, is_abstract
from sgc.tracing.values.items import type_of
from sgc.tracing.values.references.dicts import ReferenceDict
from sgc.tracing.values.references.local import dict_of_objects

_UNKNOWN = object()
_HASHABLE = TEXTUAL | {Kind.INT, Kind.FLOAT, Kind.BOOL}


def collected(of: type) -> Callable[..., Any]:
    """`dict`, `set` or `frozenset`, also of items that are known only at run time."""
    code = _code_of(of)

    def call(*args: Any, **kwargs: Any) -> Any:
        (items,) = args if len(args) == 1 and not kwargs else (None,)
        if type(items) is ReferenceDict and of is dict:
            return items.copied()
        if not _is_run_time(of, items):
            return of(*args, **kwargs)
        session: Any = current_session()
        return session.coded(code, (items,), OBJECT)

    return call


def _code_of(of: type) -> str:
    return f"def piece(items):\n    return {of.__name__}(items)"


def listed_in(value: Any) -> Type | None:
    """The type of the list that a set known only at run time was made of; None for other values."""
    if type(value) is not AbstractObject:
        return None
    session: Any = value.session
    op, fields = session.made.get(value.symbol.name, ("", {}))
    if op != "evaluate" or fields["code"] not in _SETS:
        return None
    (items,) = fields["args"]
    return session.told_type(items)  # type: ignore[no-any-return]


_SETS = (Lit(_code_of(set)), Lit(_code_of(frozenset)))


def as_set(items: Any) -> Any:
    """The set that a comprehension makes of these items."""
    return _made(set, items)


def as_dict(items: Any) -> Any:
    """The dict that a comprehension makes of these pairs."""
    found = dict_of_objects(items)
    if found is not None:
        return found
    return _made(dict, items)


def _made(of: type, items: Any) -> Any:
    """Python tells at each item that it cannot be hashed; here, only the end would tell."""
    if not all(map(_is_hashable, _keys(of, items))):
        stop(
            f"a {of.__name__} with keys whose type is known only at run time",
            hint="make the keys texts, str(key); or " + INTERPRET,
        )
    return KNOWING[of](items)


def _is_run_time(of: type, items: Any) -> bool:
    if isinstance(items, AbstractJson) or type(items) not in (list, tuple, AbstractList):
        return False
    return type(items) is AbstractList or any(map(is_abstract, _keys(of, items)))


def _keys(of: type, items: Any) -> list[Any]:
    """The keys of a set's or dict's items; of an abstract list, the type of all its keys."""
    if isinstance(items, AbstractList):
        item = items.symbol.type.item
        is_pair = isinstance(item, RowType) and item.keys is None and len(item.row) == 2
        key = item if of is not dict else item.row[0] if is_pair else None  # type: ignore[union-attr]
        return [key or _UNKNOWN]
    if of is not dict:
        return [*items]
    return [each[0] for each in items if type(each) is tuple and len(each) == 2]


def _is_hashable(key: Any) -> bool:
    """Whether a key is known to be hashable; or any key of a type."""
    if isinstance(key, Type):
        return key.kind in _HASHABLE
    if is_abstract(key):
        return type_of(key).kind in _HASHABLE
    if isinstance(key, tuple):
        return all(map(_is_hashable, key))
    return key is not _UNKNOWN and type(key).__hash__ is not None


KNOWING.update({of: collected(of) for of in (dict, set, frozenset)})
