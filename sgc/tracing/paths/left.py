"""Generators that are left before their end.

Python runs the rest of such a generator, a `finally` or the end of a `with` block, once nothing
refers to the generator. A trace holds more references than the program, so it would run at another
time.
"""

from __future__ import annotations

import inspect
from types import FrameType
from typing import Any

from sgc.core.places import user_loc_of
from sgc.core.stops import INTERPRET, TraceStop, raise_stop
from sgc.errors import TraceError
from sgc.tracing.code.bytecode import info_of

_GENERATOR = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


class Left:
    """Watches the generators of a run that wait inside a `try` or `with` block."""

    def __init__(self) -> None:
        self._waiting: dict[FrameType, None] = {}

    def see(self, frame: FrameType, event: str, arg: Any) -> TraceStop | None:
        """Called with each event of a trace function; returns the stop if a generator is left."""
        if not frame.f_code.co_flags & _GENERATOR:
            return None
        if event == "exception" and issubclass(arg[0], GeneratorExit) and _is_in_block(frame):
            self._waiting.pop(frame, None)
            return _stopped(frame)
        if event == "return" and info_of(frame.f_code).is_yield(frame.f_lasti):
            if _is_in_block(frame):
                self._waiting[frame] = None
        elif event in ("call", "return"):
            self._waiting.pop(frame, None)
        return None

    def refuse_waiting(self) -> None:
        """Stops the trace if a generator still waits at its end."""
        for frame in self._waiting:
            raise _stopped(frame)


def _is_in_block(frame: FrameType) -> bool:
    return info_of(frame.f_code).is_in_block(frame.f_lasti)


def _stopped(frame: FrameType) -> TraceStop:
    error = TraceError(
        f"the generator {frame.f_code.co_name} is left before its end, inside a block that has "
        "something to do then",
        where=str(user_loc_of(frame)),
        hint="go through all its items, or return a list; or " + INTERPRET,
    )
    try:
        raise_stop(error, is_late=True)
    except TraceStop as stopped:
        return stopped
