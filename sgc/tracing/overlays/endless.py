"""`cycle`, `count` and `repeat`, with iterators whose position is known; and `zip`, `enumerate` and
`islice` of these, or of other loops, beside lists known only at run time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from sgc.core.session import current_session
from sgc.lang.group import ProgramStateGroup
from sgc.tracing.operators.calls import KNOWING
from sgc.tracing.operators.lookups import picked
from sgc.tracing.values.abstract import AbstractJson, AbstractList, is_abstract
from sgc.tracing.values.abstract_loops import Items, Iterated, Loop
from sgc.tracing.values.abstract_number import AbstractNumber
from sgc.tracing.values.abstract_range import AbstractRange
from sgc.tracing.values.loops.endless import (
    Count,
    Cycle,
    Endless,
    Limited,
    Repeat,
    Sequential,
    Together,
)
from sgc.tracing.values.open_fork import OpenFork

_LISTED = (AbstractList, OpenFork)
_SEQUENCES = (list, tuple, range, str)


def zipped(iterables: Sequence[Any]) -> Loop | None:
    """The result of `zip` for the tracer's loops beside lists; None where `zip` itself works."""
    session = _tracing()
    if session is None or not any(map(_is_loop, iterables)):
        return None
    parts = [_part(session, each) for each in iterables]
    is_known = all(isinstance(each, (Endless, Sequential)) for each in parts)
    return None if None in parts or is_known else Together(session, parts)


def numbered(items: Any, start: Any) -> Loop | None:
    """The result of `enumerate` for an iterator that may have begun; None for other iterables."""
    if not isinstance(items, (Endless, Iterated)):
        return None
    return Together(items._session, (Count(items._session, start, 1), items), "enumerate")


def limited(items: Any, ends: Sequence[Any]) -> Any:
    """The result of `islice` for one of the tracer's loops and one end; None for others."""
    if not _is_loop(items) or len(ends) != 1 or not _is_number(ends[0]):
        return None
    session = _tracing()
    part = None if session is None else _part(session, items)
    if part is not None and ends[0] < 0:
        return itertools.islice((), -1)  # raises Python's own error
    return None if part is None else Limited(session, part, ends[0])


def _part(session: Any, value: Any) -> Any:
    """An iterator over a value, with a known position; None if there is none."""
    if isinstance(value, Loop):
        return value
    if isinstance(value, AbstractRange):
        return value.counted()
    if type(value) is ProgramStateGroup:
        value = value.states
    if isinstance(value, _LISTED):
        return Items(value.iterated())
    if type(value) in _SEQUENCES and not (type(value) is str and is_abstract(value)):
        return Sequential(session, value, picked)
    return None


def _is_loop(value: Any) -> bool:
    return isinstance(value, (Loop, AbstractRange))


def _is_number(value: Any) -> bool:
    if isinstance(value, AbstractNumber):
        return value.python is int
    return type(value) is int


def _tracing() -> Any:
    session: Any = current_session()
    return session if session is not None and session.is_tracing else None


def _cycle(*args: Any) -> Any:
    session = _tracing()
    items: Any = args[0] if len(args) == 1 else None
    if type(items) is ProgramStateGroup:
        items = items.states
    is_listed = isinstance(items, AbstractList) and not isinstance(items, AbstractJson)
    is_known = type(items) in _SEQUENCES and not (type(items) is str and is_abstract(items))
    if session is None or not (is_listed or is_known):
        return itertools.cycle(*args)
    return Cycle(session, items.iterated() if is_listed else items, picked)


def _count(start: Any = 0, step: Any = 1) -> Any:
    session = _tracing()
    if session is None or not (_is_number(start) and _is_number(step)):
        return itertools.count(start, step)
    return Count(session, start, step)


def _repeat(*args: Any, **kwargs: Any) -> Any:
    session = _tracing()
    if session is None or len(args) != 1 or kwargs:
        return itertools.repeat(*args, **kwargs)
    return Repeat(session, args[0])


KNOWING.update({itertools.cycle: _cycle, itertools.count: _count, itertools.repeat: _repeat})
