"""Stopping a trace with an error that names the user's line, what was found, and a way out.

A stop derives from `BaseException`, so a program's own `except Exception` does not swallow it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from sgc.core.places import user_loc
from sgc.core.session import current_session
from sgc.errors import TraceError
from sgc.ir.graph import Loc

INTERPRET = "run it with --interpret (or f.run), which needs no trace"
IN_A_TOOL = "do it in a tool, a function with @sgc.tool that the program calls; or " + INTERPRET
DECIDE = "make the argument static with --bind name=value if it is one, or " + INTERPRET


class TraceStop(BaseException):
    """Carries the error out of the traced program, past its own handlers."""

    def __init__(self, error: TraceError, is_late: bool = False) -> None:
        super().__init__(error)
        self.error, self.is_late = error, is_late
        self.loc = user_loc()


def stop(message: str, hint: str = INTERPRET, is_late: bool = False) -> NoReturn:
    """Ends the trace with an error at the user's line. is_late: what was traced before may already
    be wrong."""
    raise_stop(TraceError(message, where=str(user_loc() or ""), hint=hint), is_late)


@contextmanager
def told_at(loc: Loc | None) -> Iterator[None]:
    """Errors raised inside, after the program has run, name this place: no line of it runs."""
    try:
        yield
    except TraceStop as stopped:
        stopped.error.where = str(loc or "")
        raise


def raise_stop(error: TraceError, is_late: bool = False) -> NoReturn:
    """Stops the trace; the session remembers the stop in case a bare `except` swallows it."""
    stopped = TraceStop(error, is_late)
    session = current_session()
    if session is not None and getattr(session, "stopped", stopped) is None:
        session.stopped = stopped  # type: ignore[attr-defined]
    raise stopped
