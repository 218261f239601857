"""`f(x, *xs)` of a live list: how many items there are is decided, up to what `f` takes."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

from sgc.core.places import here
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
    n = next((n for n in range(n_too_many) if _has(whole, n)), n_too_many)
    if isinstance(function, Tool):
        _check(function, n_before + n)
    if n < n_too_many:
        return [whole[k] for k in range(n)]
    head, tail, n_more = _told(function, n_before + n_too_many)
    code = f"def piece(a):\n    return {head!r} + str(len(a) + {n_before + n_more}) + {tail!r}"
    (message,) = session.performed(code, (whole,), (types.TEXT,), True)
    raise TypeError(message)


def _check(tool: Tool, n: int) -> None:
    """Raises the tool's own error, of the run, for this number of arguments."""
    try:
        inspect.signature(tool.python).bind(*[None] * n)
    except TypeError as error:
        found = ArgumentError(tool.unfit(str(error)), where=here())
        found.is_of_run = True
        raise found from error


@unhooked
def _told(function: Any, n: int) -> tuple[str, str, int]:
    """What Python says of a call with too many arguments, n of them, around their number; and how
    many more it counts."""
    of, n_more = (start_of(function), 1) if isinstance(function, type) else (function, 0)
    try:
        of(*[None] * (n + n_more))  # type: ignore[misc]
    except TypeError as error:
        head, number, tail = str(error).rpartition(f"{n + n_more} ")
        return head, number[-1:] + tail, n_more
    raise AssertionError


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
