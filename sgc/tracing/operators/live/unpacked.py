"""`f(x, *xs)` of a live list: how many items there are is decided, up to what `f` takes."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from sgc.core.places import here
from sgc.core.stops import INTERPRET, stop
from sgc.core.watching import unhooked
from sgc.errors import ArgumentError
from sgc.ir import types
from sgc.lang.tools import Tool
from sgc.tracing.code.calling import start_of
from sgc.tracing.values.live.abstract_live import AbstractLive

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def unpacked(items: Any, n_before: int, function: Any) -> Any:
    """The items that a call unpacks. n_before: the arguments before them; function: what is called,
    which raises its own error for too many."""
    if type(items) is not AbstractLive:
        return items
    most = _most(function)
    if most is None:
        return items
    session: Any = items.session
    (whole,) = session.performed("def piece(a):\n    return [*a]", (items,), (types.LIVE,))
    n_too_many = max(most - n_before, 0) + 1
    for n in range(n_too_many):
        if _has(whole, n):
            return [whole[k] for k in range(n)]
    if isinstance(function, Tool):
        error = ArgumentError(function.unfit("too many positional arguments"), where=here())
        error.is_of_run = True
        raise error
    if not _has(whole, n_too_many):  # its error tells the number
        stop(f"a call unpacks a list into more than {most} arguments", INTERPRET)
    return [whole[n] for n in range(n_too_many)]


def _has(items: AbstractLive, n: int) -> bool:
    code = "def piece(a, n):\n    return len(a) == n"
    (found,) = items.session.performed(code, (items, n), (types.BOOL,), True)
    return bool(found)


@unhooked
def _most(function: Any) -> int | None:
    """How many positional arguments a function, class or tool of the program takes; None if any, or
    if that is not known."""
    python = function.python if isinstance(function, Tool) else function
    of = start_of(python) if isinstance(python, type) else python
    if not isinstance(of, FunctionType):
        return None
    parameters = [*inspect.signature(of).parameters.values()][isinstance(python, type) :]
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return None
    return sum(each.kind in _POSITIONAL for each in parameters)
