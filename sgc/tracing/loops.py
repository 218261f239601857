"""Watches the user's lines while a program is traced, and counts the turns of its loops.

A loop's iterator lies where nobody can look; that it was begun at the same point of the program
and has given as many items is as good. Loops of our own tell their state themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from sgc.session import is_users
from sgc.tracing.bytecode import Slot, info_of
from sgc.tracing.snapshot import is_clean


class Fault(BaseException):
    """An error of the tracer's own, which is none of the program that it looks at."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(slots=True)
class _Loop:
    entry: object  # where in the program it was begun
    n_states: int  # streams there were then
    n_turns: int = 0


class Loops:
    """The loops that a run is in. at_statement: called where a statement begins, if that line,
    by its number among those run, is asked for.
    """

    def __init__(
        self,
        root: FrameType,
        entry: Callable[[], object],
        n_states: Callable[[], int],
        at_statement: Callable[[list[FrameType]], None],
        is_asked: Callable[[int], bool],
    ) -> None:
        self._root = root
        self._entry, self._n_states = entry, n_states
        self._at_statement, self._is_asked = at_statement, is_asked
        self._loops: dict[FrameType, dict[int, _Loop]] = {}
        self._own: dict[tuple[FrameType, int], Any] = {}
        self.n_events = 0
        self.frame: FrameType | None = None
        self._before: Any = None

    # -- watching -------------------------------------------------------------------------

    def start(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._on_call)

    def stop(self) -> None:
        sys.settrace(self._before)

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not is_users(frame):
            return None
        frame.f_trace_opcodes = False
        return self._on_line

    def _on_line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "return":
            self._loops.pop(frame, None)
        if event == "line":
            self.n_events += 1
            try:
                self._look(frame)
            except Exception as error:
                raise Fault(error) from error
        return self._on_line

    def _look(self, frame: FrameType) -> None:
        self._count(frame)
        if not self._is_asked(self.n_events):
            return
        frames = self.frames_from(frame)
        self.frame = frame
        if is_clean(frames):
            self._at_statement(frames)

    def frames_from(self, frame: FrameType | None) -> list[FrameType]:
        """The user's frames of this run, innermost first."""
        found = []
        while frame is not None and frame is not self._root:
            if is_users(frame):
                found.append(frame)
            frame = frame.f_back
        return found

    def _count(self, frame: FrameType) -> None:
        """Notes the loops that the frame is in, and a turn of the one that begins anew."""
        info = info_of(frame.f_code)
        if not info.for_iters:
            return
        place = info.before(frame.f_lasti)
        inside = {
            info.loops.get(offset, -1)
            for slot, offset in place.stack or ()
            if slot is Slot.ITERATOR
        }
        loops = self._loops.setdefault(frame, {})
        for head in [head for head in loops if head not in inside]:
            del loops[head]
            self._own.pop((frame, head), None)
        for head in inside - loops.keys():
            loops[head] = _Loop((self._entry(), self.n_events), self._n_states())
        if frame.f_lasti in loops:
            loops[frame.f_lasti].n_turns += 1

    # -- what it knows --------------------------------------------------------------------

    @property
    def n_states(self) -> int:
        """How many streams there were when the innermost loop began, which may hold any of them."""
        return max(
            (loop.n_states for loops in self._loops.values() for loop in loops.values()), default=0
        )

    def note(self, iterator: Any) -> None:
        """Called by a loop of our own when it begins, with what tells its state."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not is_users(frame):
            frame = frame.f_back
        if frame is not None:
            info = info_of(frame.f_code)
            self._own[frame, info.loops.get(frame.f_lasti, -1)] = iterator

    def describe(self, frame: FrameType, head: int) -> object:
        """A loop's state: what its own iterator says, or where it began and its turns."""
        own = self._own.get((frame, head))
        if own is not None:
            return own
        loop = self._loops.get(frame, {}).get(head)
        return None if loop is None else (repr(loop.entry), loop.n_turns)
