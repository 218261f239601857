"""Errors that Python raises about abstract values, which the program must not handle as its own.

Such an error names the class of an abstract value, or says that C code does not know the class. A
trace function sees the error and stops the trace where it is raised, before anything handles it.
"""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

from sgc.core.places import IS_OWN, is_users
from sgc.core.stops import INTERPRET, TraceStop, stop
from sgc.tracing.values.abstract import is_abstract

_RAISED = (TypeError, AttributeError, ValueError)
_OF_THE_TRACE = re.compile(
    r"\bAbstract[A-Z][a-z]+\b|'(Items|Numbered|Backwards|Loop|Numbers|_PlainMethod|_Unbound)'"
)


def refuse_ours(event: str, arg: Any) -> None:
    """Stops the trace if a trace function sees such an error."""
    if event == "exception" and issubclass(arg[0], _RAISED):
        kind, error, traceback = arg
        if kind in _RAISED and (
            _OF_THE_TRACE.search(str(error)) or (kind is TypeError and _is_librarys(traceback))
        ):
            _stop(kind, traceback)


def _is_librarys(traceback: TracebackType | None) -> bool:
    """Whether a library's own code raises an error while it holds an abstract value: the code may
    ask for a type that the value will have at run time."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return False
    frame = traceback.tb_frame
    if is_users(frame) or IS_OWN[frame.f_globals.get("__name__", "")]:
        return False
    return any(map(is_abstract, frame.f_locals.values()))


def _stop(kind: type, traceback: TracebackType | None) -> None:
    try:
        stop(
            f"Python raises a {kind.__name__} for a value known only at run time",
            hint="write what is meant for its type, such as str(x) or int(x); or " + INTERPRET,
        )
    except TraceStop as stopped:
        # The stop gets the error's place, although a trace function raises it.
        raise stopped.with_traceback(traceback) from None
