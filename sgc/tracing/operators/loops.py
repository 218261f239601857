"""What a loop goes over: whether it is one of the graph."""

from __future__ import annotations

import builtins
from typing import Any

from sgc.core.session import current_session
from sgc.tracing.operators.calls import KNOWING
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


def numbers(over: Any) -> Any:
    """What a `for` goes over: of a `range`, the turn that it is in is told to the trace."""
    session: Any = current_session()
    if session is None or not session.is_tracing or type(over) is not range:
        return over
    return Numbers(session, over)
