"""What `max`, `min`, `sorted` and `sort` give whose key was called for each item before."""

from __future__ import annotations

from itertools import chain
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.core.watching import unhooked
from sgc.ir import types
from sgc.ir.graph import Ref
from sgc.tracing.kinds.row_types import RefType, RowType, holds_references
from sgc.tracing.operators.calls import callee
from sgc.tracing.operators.lists import keyed, ordered
from sgc.tracing.values.abstract import AbstractList, is_abstract
from sgc.tracing.values.items import type_of
from sgc.tracing.values.references.reference import is_reference

_NOTHING = object()
FIXED = (types.TEXT, types.INT, types.FLOAT, types.BOOL)
_PYTHONS = {"max": max, "min": min}
_ORDER = (
    "def piece(p, r):\n"
    "    n = sorted(range(len(p)), key=lambda n: p[n][0], reverse=r)\n"
    "    return [p[each][1] for each in n]"
)
_EXTREME = "def piece(p):\n    return {}(range(len(p)), key=lambda n: p[n][0])"


def chosen(
    name: str,
    pairs: Any,
    of: Any = None,
    default: Any = _NOTHING,
    reverse: Any = False,
    key: Any = None,
) -> Any:
    """The result of a function by its name. pairs: the items, each after its key; of: the list that
    is sorted; key: has given the keys."""
    if name == "sort" and not (type(of) is list or isinstance(of, AbstractList)):
        stop("sort of what is no list", INTERPRET)
    if default is not _NOTHING and not pairs:
        return default
    found = _in_graph(pairs)
    if found is not None and name in _PYTHONS:
        return _extreme(name, found)
    result = _in_python(name, pairs, reverse) if found is None else _ordered(found, reverse)
    if name != "sort":
        return result
    if isinstance(of, AbstractList) and isinstance(result, AbstractList):
        of.becomes(result)
    elif isinstance(of, AbstractList):
        assert not result  # nothing was ever put into it
    else:
        of[:] = result if found is None else [result.sure_item(n) for n in range(len(of))]
    return None


def rest(whole: Any, items: Any) -> Any:
    """What `whole.extend(items)` is still to append, one by one."""
    if (
        type(whole) is list
        and isinstance(items, AbstractList)
        and items.whole_type.item is not None
    ):
        if items.is_void:
            return ()
        if holds_references(items.whole_type):
            return items[:]
    callee(whole.extend)(items)
    return ()


def popped(queue: Any, end: int) -> Any:
    """`popleft()` or `pop()` of a deque that is traced as a list."""
    if not queue:
        raise IndexError("pop from an empty deque")
    return queue.pop(end)


def peeked(queue: Any, end: int) -> Any:
    """`queue[0]` or `queue[-1]` of such a deque."""
    if not queue:
        raise IndexError("deque index out of range")
    return queue[end]


def _in_python(name: str, pairs: Any, reverse: Any) -> Any:
    keys, items = [key for key, _ in pairs], [item for _, item in pairs]
    if name in _PYTHONS:
        return items[_PYTHONS[name](range(len(items)), key=keyed(keys.__getitem__))]
    order: Any = [*range(len(items))]
    return [items[n] for n in ordered(order, keys.__getitem__, reverse)]


@unhooked
def _in_graph(pairs: Any) -> AbstractList | None:
    """The pairs as a list of the graph; None if Python's own comparisons choose."""
    if isinstance(pairs, AbstractList):
        if not isinstance(pairs.item_type, RowType):
            stop("a key gives values of different types", INTERPRET)
        return pairs
    session: Any = current_session()
    if len(pairs) < 2 or not any(is_abstract(part) or is_reference(part) for part in chain(*pairs)):
        return None
    rows = {type_of(pair) for pair in pairs}
    row = next(iter(rows))
    is_plain = isinstance(row, RowType) and all(map(_is_plain, row.row))
    if len(rows) > 1 or not is_plain:
        return None
    operand = session.operand(pairs)
    assert isinstance(operand, Ref)
    return AbstractList(Symbol(operand.name, types.list_of(rows.pop())), session)


def _is_plain(type_: types.Type) -> bool:
    return type_ in FIXED or isinstance(type_, RefType)


def _extreme(name: str, pairs: AbstractList) -> Any:
    session: Any = pairs.session
    index = session.heap.coded(_EXTREME.format(name), (pairs,), types.INT)
    return pairs.sure_item(index)[1]


def _ordered(pairs: AbstractList, reverse: Any) -> AbstractList:
    session: Any = pairs.session
    assert isinstance(pairs.item_type, RowType)
    of = types.list_of(pairs.item_type.row[1])
    made: AbstractList = session.heap.coded(_ORDER, (pairs, reverse), of)
    session.new.add(made.symbol.name)
    return made
