"""Watches the user's lines while a program is traced, and counts the turns of its loops.

A loop's iterator cannot be inspected. Instead, two iterators count as equal if they were made at
the same point of the program and have yielded the same number of items. The language's own loops
report their state themselves.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FrameType, GeneratorType
from typing import Any

from sgc.core.places import IS_OWN, is_users
from sgc.tracing.code.bytecode import CodeInfo, info_of
from sgc.tracing.code.frames import Opaque, is_clean, is_generator
from sgc.tracing.code.stacks import Slot, Stack
from sgc.tracing.paths.events import SEED, Events
from sgc.tracing.paths.walked import Walked, generator_of, is_choosing, state_of

MAX_FOREIGN = 20_000
CLOSES_SILENTLY = sys.version_info >= (3, 13)
# The code of libraries, by id; a cache, since every call in a trace is checked.
_foreign: dict[int, CodeType] = {}


class Fault(BaseException):
    """An error of the tracer itself, not of the traced program."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(slots=True)
class _Loop:
    entry: object  # the point of the program where the loop began
    n_states: int  # the number of streams at that point
    n_turns: int = 0


class Loops:
    """The loops that a run is in. at_statement: called at the beginning of a statement if
    `is_asked` is true of its frame; before_line: called before each line.
    """

    def __init__(
        self,
        root: FrameType,
        entry: Callable[[], object],
        n_states: Callable[[], int],
        at_statement: Callable[[list[FrameType], bool], None],
        before_line: Callable[[FrameType], None],
        is_asked: Callable[[FrameType], bool],
        events: Events,
    ) -> None:
        self._root: FrameType | None = root
        self._entry, self._n_states = entry, n_states
        self._at_statement, self._is_asked = at_statement, is_asked
        self._before_line = before_line
        self._events = events
        self._loops: dict[FrameType, dict[int, _Loop]] = {}
        self._own: dict[FrameType, dict[int, Any]] = {}
        self._walked: dict[FrameType, dict[int, tuple[tuple[Walked, ...], Iterator[Any]]]] = {}
        self._begun: dict[FrameType, dict[int, int]] = {}  # n_states of loops not yet seen
        self._hidden: dict[FrameType, set[int]] = {}  # loops whose iterators run the user's code
        self.n_events = 0
        self.frame: FrameType | None = None
        self._closing: FrameType | None = None  # a generator that is closed now
        self._before: Any = None
        self._had_gc = True

    # -- watching -------------------------------------------------------------------------

    def start(self) -> None:
        self._before, self._had_gc = sys.gettrace(), gc.isenabled()
        gc.disable()  # otherwise finalizers and callbacks of others run between the lines
        sys.settrace(self._on_call)

    def forget_ended(self) -> None:
        """Drops the variables of the latest frame if the frame has ended: they count as holders."""
        if self.frame is not None and not is_generator(self.frame):
            with contextlib.suppress(RuntimeError):  # the frame still runs
                self.frame.clear()
                self.frame = None  # with the copy that `f_locals` made

    def stop(self) -> None:
        sys.settrace(self._before)
        if self._had_gc:
            gc.enable()
        # Breaks a cycle: frames hold the run's values, these the session, and that this object.
        self._root = self.frame = self._closing = None
        for found in (self._loops, self._own, self._walked, self._begun, self._hidden):
            found.clear()  # type: ignore[attr-defined]

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> Any:
        if IS_OWN[frame.f_globals.get("__name__", "")]:
            return None
        code = frame.f_code
        if id(code) in _foreign:
            return None
        if code is SEED:
            self._events.note_seed(frame)
            return None
        if not is_users(frame):
            if len(_foreign) < MAX_FOREIGN:
                _foreign[id(code)] = code
            return None
        if self._is_imported(frame):
            return None
        frame.f_trace_opcodes = False
        self._events.see(frame, event, arg)
        caller = self._users(frame.f_back)
        if caller is not None:
            self._enter(caller, frame)
        return self._on_line

    def _is_imported(self, frame: FrameType | None) -> bool:
        """Whether an import runs the frame; this happens only in the first run of a program."""
        while frame is not None and frame is not self._root and frame.f_trace is None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return True
            frame = frame.f_back
        return False

    def _enter(self, caller: FrameType, frame: FrameType) -> None:
        """Called when a user's function is called, perhaps on the line that begins a loop."""
        info, offset = info_of(caller.f_code), caller.f_lasti
        if info.is_at_loop(offset) and not self._continues(caller, frame):
            self._hidden.setdefault(caller, set()).add(info.start_of(offset))
        else:
            self._notice(caller, info.after(offset).stack, info)

    def _continues(self, caller: FrameType, frame: FrameType) -> bool:
        generator = self.generator_at(caller)
        return generator is not None and generator.gi_frame is frame

    def generator_at(self, frame: FrameType) -> GeneratorType[Any, Any, Any] | None:
        """The generator from which a loop of the frame is taking its next item."""
        info, offset = info_of(frame.f_code), frame.f_lasti
        if not info.is_at_loop(offset):
            return None
        head = info.head_at(offset)
        _, walked = self._walked.get(frame, {}).get(head, ((), None))
        return generator_of(self._own.get(frame, {}).get(head, walked))

    def _on_line(self, frame: FrameType, event: str, arg: Any) -> Any:
        self._events.see(frame, event, arg)
        if event == "exception" and is_generator(frame):
            self._closing = frame if issubclass(arg[0], GeneratorExit) else None
        if event == "return":
            self._leave(frame)
            self._closing = None
        if event == "line":
            self.n_events += 1
            try:
                self._look(frame)
            except Exception as error:
                raise Fault(error) from error
        return self._on_line

    def _leave(self, frame: FrameType) -> None:
        """Called when a function returns or yields."""
        info, offset = info_of(frame.f_code), frame.f_lasti
        is_closed = frame is self._closing  # at its `yield`: it does not handle GeneratorExit
        if is_generator(frame) and info.is_yield(offset) and not is_closed:
            for loop in self._notice(frame, info.after(offset).stack, info).values():
                loop.n_turns += 1  # a loop on one line may go on without an event for its line
            return
        self._forget(frame)

    def _forget(self, frame: FrameType) -> None:
        for found in (self._loops, self._own, self._walked, self._begun, self._hidden):
            found.pop(frame, None)  # type: ignore[attr-defined]

    def _forget_closed(self) -> None:
        """Forgets generators that have been closed, of which Python 3.13 sends no event; it clears
        only the frames of closed generators."""
        for frame in [each for each in self._walked if is_generator(each)]:
            with contextlib.suppress(RuntimeError):
                frame.clear()
                self._forget(frame)

    def _look(self, frame: FrameType) -> None:
        self._count(frame)
        if self._is_asked(frame):
            if CLOSES_SILENTLY:
                self._forget_closed()
            frames = self.frames_from(frame)
            self.frame = frame
            self._at_statement(frames, is_clean(frames, self._continues))
        self._before_line(frame)

    def frames_from(self, frame: FrameType | None) -> list[FrameType]:
        """The user's frames of this run, innermost first."""
        found = []
        while (frame := self._users(frame)) is not None:
            found.append(frame)
            frame = frame.f_back
        return found

    def _users(self, frame: FrameType | None) -> FrameType | None:
        """The innermost of the user's frames of this run, from the given frame outwards."""
        while frame is not None and frame is not self._root:
            if is_users(frame):
                return frame
            frame = frame.f_back
        return None

    def _count(self, frame: FrameType) -> None:
        """Updates the loops that the frame is in, and counts a turn if one begins."""
        info = info_of(frame.f_code)
        if not info.for_iters:
            return
        offset = frame.f_lasti
        loops = self._notice(frame, info.before(offset).stack, info)
        head = info.head_at(offset)
        if head in loops:
            loops[head].n_turns += 1

    def _notice(self, frame: FrameType, stack: Stack | None, info: CodeInfo) -> dict[int, _Loop]:
        """The loops that the frame is in; forgets the loops that it has left."""
        inside = {
            info.loops.get(offset, -1) for slot, offset in stack or () if slot is Slot.ITERATOR
        }
        loops = self._loops.setdefault(frame, {})
        for found in (loops, self._own.get(frame, {}), self._walked.get(frame, {})):
            for head in [head for head in found if head not in inside]:
                del found[head]  # type: ignore[attr-defined]
        self._hidden.get(frame, set()).intersection_update(inside)
        for head in inside - loops.keys():
            # A loop on one line is seen only when its first turn has ended.
            begun = self._begun.get(frame, {}).pop(head, self._n_states())
            loops[head] = _Loop((self._entry(), self.n_events), begun)
        return loops

    # -- what it knows --------------------------------------------------------------------

    @property
    def n_states(self) -> int:
        """The number of streams when the innermost loop began whose iterator may hold streams. An
        iterator whose state is known holds no hidden streams."""
        return max(
            (
                loop.n_states
                for frame, loops in self._loops.items()
                for head, loop in loops.items()
                if not self._tells(frame, head)
            ),
            default=0,
        )

    def _tells(self, frame: FrameType, head: int) -> bool:
        if head in self._own.get(frame, {}):
            return True
        _, iterator = self._walked.get(frame, {}).get(head, ((), None))
        return state_of(iterator) is not None

    def note(self, iterator: Any) -> None:
        """Called when one of the language's loops begins. iterator: holds the loop's state."""
        for frame, head in _beginning(sys._getframe(1)):
            self._own.setdefault(frame, {})[head] = iterator
            self._begun.setdefault(frame, {})[head] = self._n_states()

    def note_walked(self, found: tuple[Walked, ...], iterator: Iterator[Any]) -> None:
        """Called by any other loop when it begins. found: the containers that it iterates."""
        for frame, head in _beginning(sys._getframe(1)):
            self._walked.setdefault(frame, {})[head] = found, iterator
            self._begun.setdefault(frame, {})[head] = self._n_states()
            if is_choosing(iterator):
                self._hidden.setdefault(frame, set()).add(head)

    def is_caught(self) -> bool:
        """Whether the program itself handles an error raised at its current place."""
        frames = self.frames_from(sys._getframe(1))
        return any(info_of(frame.f_code).is_caught(frame.f_lasti) for frame in frames)

    def describe(self, frame: FrameType, head: int) -> object:
        """A loop's state: the iterator's state, or the point where the loop began and its turns."""
        if head in self._hidden.get(frame, ()):
            raise Opaque
        own = self._own.get(frame, {}).get(head)
        if own is not None:
            return own
        loop = self._loops.get(frame, {}).get(head)
        if loop is None:
            return None
        over, iterator = self._walked.get(frame, {}).get(head, ((), None))
        state = state_of(iterator)
        if state is not None:
            return state
        return (repr(loop.entry), loop.n_turns, *(each.changed for each in over))


def _beginning(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    """The user's frame, and the loop that begins in it."""
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    head = None if frame is None else info_of(frame.f_code).loops.get(frame.f_lasti)
    if frame is not None and head is not None:
        yield frame, head
