"""Whether a value is known only at run time, or holds such a value."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sgc.core.session import current_session
from sgc.tracing.kinds.records import is_record, parts_of
from sgc.tracing.values.abstract import (
    is_abstract,
)
from sgc.tracing.values.tool_failures import TracedTold

if TYPE_CHECKING:
    pass


def is_run_time(*values: Any) -> bool:
    """Whether one of a piece's inputs is abstract or holds an abstract value."""
    session = current_session()
    return session is not None and session.is_tracing and _holds(values)


def _holds(values: Iterable[Any]) -> bool:
    left, seen = [*values], set[int]()
    while left:
        value = left.pop()
        if is_abstract(value) or isinstance(value, TracedTold):
            return True
        if id(value) not in seen:
            seen.add(id(value))  # objects may hold each other
            left += _parts(value)
    return False


def _parts(value: Any) -> Iterable[Any]:
    if is_record(value):
        return parts_of(value).values()
    if isinstance(value, dict):
        return (*value, *value.values())
    return value if isinstance(value, (list, tuple, set, frozenset, deque)) else ()
