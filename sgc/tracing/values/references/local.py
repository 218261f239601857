"""Dicts and sets of variables that are cells, as those of attributes are: they may hold references,
and have keys known only at run time."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from typing import Any

from sgc.core.session import current_session
from sgc.tracing.kinds.row_types import DictType, RowType, holds_references
from sgc.tracing.values.abstract_list import AbstractList
from sgc.tracing.values.references.cells import AS_DICT
from sgc.tracing.values.references.fields import is_cell
from sgc.tracing.values.references.reference import is_reference

_KINDS = (dict, set, defaultdict, Counter)


def as_cell(value: Any, place: str) -> Any:
    """An empty dict or set that the program makes at a place, as a cell."""
    session: Any = current_session()
    if session is None or not session.is_tracing or type(value) not in _KINDS or value:
        return value
    return session.heap.local(value, f"{sys._getframe(1).f_code.co_filename}:{place}")


def dict_of_objects(pairs: Any) -> Any:
    """The dict that a comprehension makes of pairs with objects, as a cell; None for others."""
    frame = sys._getframe(2)
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}:of {frame.f_lasti}"
    if type(pairs) is list:
        return _of_known(pairs, place)
    if not isinstance(pairs, AbstractList) or not holds_references(pairs.whole_type):
        return None
    session: Any = pairs.session
    row = pairs.item_type
    if not isinstance(row, RowType) or row.keys is not None or len(row.row) != 2:
        return None
    type_ = DictType.of(*row.row, "dict")
    made = session.heap.computed(AS_DICT, (pairs,), type_)
    return session.heap.local_of(made, type_, place)


def _of_known(pairs: list[Any], place: str) -> Any:
    """The same of a list whose length is known."""
    held = [each[-1] for each in pairs if type(each) is tuple]
    if not any(is_reference(each) or is_cell(each) for each in held):
        return None
    session: Any = current_session()
    made = session.heap.local({}, place)
    if type(made) is dict:
        return None
    for key, value in pairs:
        made[key] = value
    return made
