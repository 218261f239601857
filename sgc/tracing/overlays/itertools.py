"""Functions of `itertools` over lists known only at run time: a `for` over their result is a loop
over lists of the graph. Without a `for`, the whole expression becomes code."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET, stop
from sgc.ir import types
from sgc.tracing.kinds.row_types import joined_item, row_of
from sgc.tracing.operators.calls import KNOWING
from sgc.tracing.operators.lookups import sliced_by
from sgc.tracing.overlays.endless import limited
from sgc.tracing.values.abstract import AbstractJson, AbstractList
from sgc.tracing.values.abstract_loops import Items, Loop
from sgc.tracing.values.abstract_number import AbstractNumber
from sgc.tracing.values.items import argument, type_of
from sgc.tracing.values.json.dict_views import part_of

_Lists = Sequence[Any]
MAX_IN_ROW = 8  # items of a row that have types of their own


def _is_abstract(value: Any) -> bool:
    return isinstance(value, AbstractList) and not isinstance(value, AbstractJson)


def _are_lists(values: _Lists) -> bool:
    """Whether some of these are lists known only at run time, and the others lists or tuples."""
    others = (each for each in values if not _is_abstract(each))
    return any(map(_is_abstract, values)) and all(type(each) in (list, tuple) for each in others)


def _made(name: str, *lists: Any, is_zipped: bool = False) -> Loop:
    found = Items(*(each.iterated() for each in lists), is_zipped=is_zipped)
    found.made_by = name
    return found


def _pairwise(*args: Any) -> Any:
    if len(args) != 1 or not _are_lists(args):
        return itertools.pairwise(*args)
    (items,) = args
    return _made("pairwise", items, items[1:], is_zipped=True)


def _islice(items: Any, *ends: Any) -> Any:
    found = limited(items, ends)
    if found is not None:
        return found
    is_told = 1 <= len(ends) <= 3 and all(map(_is_end, ends))
    is_late = any(isinstance(each, AbstractNumber) for each in ends)
    if is_late and not (is_told and (_is_abstract(items) or type(items) in (list, tuple))):
        stop(
            "islice up to a number known only at run time, of a value that is not a list or tuple",
            hint="give it a list, islice(list(xs), n); or " + INTERPRET,
        )
    if not is_told or not (is_late or _is_abstract(items)):
        return itertools.islice(items, *ends)
    start, end, step = (None, *ends, None) if len(ends) == 1 else (*ends, None)[:3]
    wrong: tuple[Any, ...] = (-1,) if len(ends) == 1 else (-1, None)
    for given, least in ((start, 0), (end, 0), (step, 1)):
        if given is not None and given < least:  # Python raises its own error
            return itertools.islice((), *((None, None, 0) if least else wrong))
    items = list(items) if type(items) is tuple else items
    return _made("islice", sliced_by(items, start, end, step))


def _is_end(value: Any) -> bool:
    if isinstance(value, AbstractNumber):
        return value.python is int
    return value is None or (type(value) is int and value >= 0)


def _chain(*iterables: Any) -> Any:
    if not _are_lists(iterables):
        return itertools.chain(*iterables)
    lists = [list(each) if type(each) is tuple else _as_list(each) for each in iterables]
    return _made("chain", reduce(operator.add, lists))


def _as_list(items: Any) -> Any:
    """A view of a dict known only at run time as a list; any other value itself."""
    is_view = isinstance(items, AbstractList) and part_of(items)
    return items[:] if is_view else items


def _from_iterable(*args: Any) -> Any:
    of: Any = args[0] if len(args) == 1 else None
    if type(of) in (list, tuple) and _are_lists(of):
        return _chain(*of)
    if not _is_abstract(of) or of.item_type.item is None:
        return itertools.chain.from_iterable(*args)
    return _made("chain", current_session().coded(_FLAT, (of,), of.item_type))  # type: ignore[union-attr]


_FLAT = "def piece(a):\n    return [item for items in a for item in items]"


def _crossed(name: str) -> Callable[..., Any]:
    """A function that makes rows of one item from each list."""
    own: Any = getattr(itertools, name)

    def function(*lists: Any, **others: Any) -> Any:
        is_longest = name == "zip_longest"
        known = {"fillvalue"} if is_longest else set()
        if not _are_lists(lists) or not others.keys() <= known:
            return own(*lists, **others)
        fill = others.get("fillvalue")
        row = [_item_type(each) for each in lists]
        if is_longest:
            row = [joined_item((each, type_of(fill))) for each in row]
        names = [f"a{n}" for n in range(len(lists))]
        more, given = (", fillvalue=b", [fill]) if is_longest else ("", [])
        return _coded(
            name, f"{', '.join(names)}{more}", [*names, *(["b"] if is_longest else [])],
            [*lists, *given], row,
        )  # fmt: skip

    return function


def _chosen(name: str) -> Callable[..., Any]:
    """A function that makes rows of some items of one list."""
    own: Any = getattr(itertools, name)

    def function(*args: Any) -> Any:
        is_told = len(args) == 2 and type(args[1]) is int and 0 < args[1] <= MAX_IN_ROW
        if not is_told or not _is_abstract(args[0]):
            return own(*args)
        row = [_item_type(args[0])] * args[1]
        return _coded(name, "a, n", ["a", "n"], args, row)

    return function


def _item_type(items: Any) -> types.Type:
    return items.item_type if _is_abstract(items) else joined_item(map(type_of, items))


def _coded(
    name: str, called: str, names: Sequence[str], args: Sequence[Any], row: Sequence[types.Type]
) -> Loop:
    session: Any = current_session()
    code = (
        f"import itertools\n\ndef piece({', '.join(names)}):\n"
        f"    return list(itertools.{name}({called}))"
    )
    given = [argument(session, each) for each in args]
    return _made(name, session.coded(code, given, types.list_of(row_of(row))))


KNOWING.update({
    itertools.pairwise: _pairwise,
    itertools.islice: _islice,
    itertools.chain: _chain,
    itertools.chain.from_iterable: _from_iterable,
    itertools.zip_longest: _crossed("zip_longest"),
    itertools.product: _crossed("product"),
    itertools.combinations: _chosen("combinations"),
    itertools.permutations: _chosen("permutations"),
})  # fmt: skip
