"""A program's events that a trace function sees besides lines: errors and ends of generators."""

from __future__ import annotations

import sys
from random import Random
from types import FrameType
from typing import Any

from sgc.core.places import IS_OWN, is_users, user_loc
from sgc.tracing.paths.errors import refuse_ours
from sgc.tracing.paths.exploration import Lines
from sgc.tracing.paths.left import Left


def raise_at_next_line(error: BaseException, root: FrameType | None) -> None:
    """Raises an error again at the user's next line: otherwise a loop whose handler catches
    everything would run forever.
    """

    def raising(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            raise error
        return raising

    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not root:
        if is_users(frame):
            frame.f_trace, frame.f_trace_lines = raising, True
        frame = frame.f_back
    sys.settrace(lambda frame, event, arg: None)


SEED, _MAKING = Random.seed.__code__, Random.__init__.__code__


class Events:
    """Stops a run of the program at events that may differ from those of an untraced run. root: the
    frame outside the program's own frames; lines: counts the lines that run."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self.root: FrameType | None = None
        self._left = Left()
        # Generators that the program has made with a seed, and their lines, by id.
        self._seeded: dict[int, tuple[Random, str]] = {}

    def start(self) -> None:
        """Starts to watch events, if nothing else watches the program's lines."""
        sys.settrace(self._on_call)

    def see(self, frame: FrameType, event: str, arg: Any) -> None:
        """Handles an event of one of the user's frames."""
        if event == "line":
            over = self._lines.over()
            if over is not None:
                raise_at_next_line(over, self.root)
                raise over
            return
        refuse_ours(event, arg)
        stopped = self._left.see(frame, event, arg)
        if stopped is not None:  # Python ignores what is raised while it frees a generator
            raise_at_next_line(stopped, self.root)

    def note_seed(self, frame: FrameType) -> None:
        """Handles a call of `Random.seed`, which is also called when a generator is made."""
        generator, seed = frame.f_locals["self"], frame.f_locals["a"]
        is_made = frame.f_back is not None and frame.f_back.f_code is _MAKING
        is_own = is_made or self.is_seeded(generator)  # else something outside may draw from it
        _, made_at = self._seeded.pop(id(generator), (None, str(user_loc() or "")))
        if type(generator) is Random and seed is not None and is_own:
            self._seeded[id(generator)] = generator, made_at

    def is_seeded(self, generator: Any) -> bool:
        """Whether a generator draws the same numbers in every run of the program."""
        return id(generator) in self._seeded

    def seeded_at(self, generator: Any) -> str:
        """The line where the program made a generator with a seed; empty for other generators."""
        return self._seeded[id(generator)][1] if self.is_seeded(generator) else ""

    def end(self) -> None:
        """Stops the trace at the program's end if a generator still waits."""
        self._left.refuse_waiting()

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> Any:
        if IS_OWN[frame.f_globals.get("__name__", "")]:
            return None
        if frame.f_code is SEED:
            self.note_seed(frame)
        if not is_users(frame):
            return None
        self.see(frame, event, arg)
        return self._on_event

    def _on_event(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.see(frame, event, arg)
        return self._on_event
