"""Errors that Python raises of abstract values, which the program must not take for its own.

Such an error names the class of a value as the trace has it, or says that C code does not know it.
The trace stops where it is raised, before anything handles it: a trace function sees that.
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
    """Whether a library's own code, which has an abstract value, raises an error: it may look for a
    type of Python's own, of which the value is none while tracing."""
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
        # Its place is the error's, although a trace function raises it.
        raise stopped.with_traceback(traceback) from None
