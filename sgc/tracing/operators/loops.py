"""What a loop goes over: whether it is one of the graph."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from sgc.core.session import current_session
from sgc.tracing.operators.calls import KNOWING
from sgc.tracing.paths.walked import is_walked, walked
from sgc.tracing.values.abstract import AbstractList, is_abstract
from sgc.tracing.values.abstract_loops import Loop
from sgc.tracing.values.abstract_range import AbstractRange, Numbers


def loops(over: Any, function: Any = None) -> bool:
    """Whether a comprehension is written as a loop: where its items, or how many there are, are
    known only at run time. function: `any` or `all`, which may be another of the user's.
    """
    session = current_session()
    if session is None or not session.is_tracing:
        return False
    if function is not None and function not in [
        known for each in (builtins.any, builtins.all) for known in (each, KNOWING.get(each))
    ]:
        return False
    if isinstance(over, (AbstractList, AbstractRange, Loop)):
        return True
    return type(over) in (list, tuple) and len(over) > 1 and any(map(is_abstract, over))


def gone_over(over: Any) -> Any:
    """What a `for` goes over: of a `range` the trace is told the turn that it is in, of lists and
    the like what they are.
    """
    session: Any = current_session()
    if session is None or not session.is_tracing:
        return over
    if type(over) is range:
        return Numbers(session, over)
    return _Told(session, over) if session.loops is not None and is_walked(over) else over


class _Told:
    """Something that a `for` goes over, told to the trace as the loop begins."""

    __slots__ = ("_over", "_session")

    def __init__(self, session: Any, over: Any) -> None:
        self._session, self._over = session, over

    def __iter__(self) -> Iterator[Any]:
        self._session.loops.note_walked(walked(self._over))
        return iter(self._over)
