"""Takes snapshots of a run; see `snapshot.py`."""

from __future__ import annotations

import sys
import types as pytypes
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from sgc.core.places import is_users, user_loc_of
from sgc.core.symbols import Symbol
from sgc.tracing.code.bytecode import info_of
from sgc.tracing.code.frames import (
    Opaque,
    called,
    function_of,
    is_generator,
    stack_of,
    waits_clean,
)
from sgc.tracing.code.stacks import Slot
from sgc.tracing.kinds.held import Shared, numbers_in
from sgc.tracing.kinds.text_types import Known
from sgc.tracing.snapshots.leaves import (
    Leaf,
)
from sgc.tracing.snapshots.object_reader import ObjectReader
from sgc.tracing.snapshots.snapshot import Part, Snapshot, Variable

if TYPE_CHECKING:
    pass


class Loops(Protocol):
    """What is known of the loops that run.

    n_states: how many streams there were when a loop of the graph began; frame: the innermost one.
    """

    frame: FrameType | None

    @property
    def n_states(self) -> int: ...

    def describe(self, frame: FrameType, head: int) -> object: ...

    def generator_at(self, frame: FrameType) -> pytypes.GeneratorType[Any, Any, Any] | None: ...


class Reader(ObjectReader):
    """Reads one snapshot."""

    def read(self, frames: list[FrameType], loops: Loops, last: Any = None) -> Snapshot:
        """Reads a snapshot. frames: the user's, innermost first; last: the program's return value,
        at its end."""
        session = self._session
        self._loops, self._frames = loops, frames
        for state in session.calling:
            self._value(state)
        for held in session.scopes:
            for item in held:
                self._start(item) if isinstance(item, Symbol) else self._value(item)
        for index in range(len(frames) - 1, -1, -1):
            if index + 1 < len(frames):
                self._closure(frames[index], frames[index + 1])
            self._frame(frames[index], loops)
        self._check_exits(frames)
        self._handled(frames)
        self._value(last)
        first = loops.n_states if frames else len(session.states)
        dead = []
        for number, state in enumerate(session.states):
            if id(state) in self._seen or number in session.retired:
                continue
            if frames and number < first:
                self._tokens.append(("kept", number))
                self._value(state)
            elif frames:
                dead.append(number)
            else:
                self._value(state)  # at the end, all streams are results
        for viewed in self._viewed:  # the places of the dict that is viewed
            self._tokens.append(tuple(leaf.label for leaf in self._leaves if leaf.symbol == viewed))
        own = tuple(tuple(state._own) for state in self.states)
        whole = Part(tuple(self._tokens), tuple(self._slots))
        facts, kept = dict(session.facts), tuple(self._known)
        return Snapshot(
            whole, tuple(self._names), own, facts, tuple(dead), kept,
            starts=frozenset(self._starts), known=self._known_of(whole),
            leaves=tuple(map(self._placed, range(len(self._leaves)))),
            loc=user_loc_of(frames[0]) if frames else None, variables=tuple(self._variables),
            shared=self._copies_of(whole), inside=self._inside_lists(),
        )  # fmt: skip

    def _placed(self, number: int) -> Leaf:
        """A leaf, after everything is read."""
        leaf = self._leaves[number]
        are_known = all(place.holder is not None for place in self.places[number])
        is_shared = bool(self.shared.get(number))
        if are_known and not is_shared:
            return leaf
        return replace(leaf, is_movable=are_known, is_shared=is_shared)

    def _copies_of(self, whole: Part) -> Shared:
        """Which objects that the program still reaches have copies in values of the graph."""
        parts = (whole, *(part for names in self._names for part in names.values()))
        found = (slot.name for part in parts for slot in part.slots)
        return self._session.held.shared(found, self._seen)

    def _inside_lists(self) -> dict[int, frozenset[object]]:
        """For each list that may be widened, the objects inside it that are also elsewhere."""
        return {
            number: frozenset(numbers_in(objects, self._seen))
            for number, objects in self.shared.items()
        }

    def _known_of(self, whole: Part) -> dict[str, Known]:
        known = self._session.known
        if not known:
            return {}
        parts = (whole, *(part for names in self._names for part in names.values()))
        found = {slot.name for part in parts for slot in part.slots}
        return {name: known[name] for name in found if name in known}

    def _check_exits(self, frames: list[FrameType]) -> None:
        """Raises Opaque if context managers are open that are not the language's."""
        n_exits = 0
        for index, frame in enumerate(frames):
            stack = stack_of(frame, is_innermost=index == 0)
            n_exits += sum(slot is Slot.EXIT for slot, _ in stack or ())
        if n_exits != len(self._session.scopes):
            raise Opaque

    def _handled(self, frames: list[FrameType]) -> None:
        """Reads the error that an `except` block handles; raises Opaque for nested blocks."""
        n_handling = 0
        for index, frame in enumerate(frames):
            stack = stack_of(frame, is_innermost=index == 0)
            n_handling += sum(slot is Slot.HANDLING for slot, _ in stack or ())
        if n_handling > 1:
            raise Opaque
        if n_handling:
            self._tokens.append("handled")
            self._value(sys.exc_info()[1])

    def _closure(self, frame: FrameType, caller: FrameType) -> None:
        """Reads the cells of a called function, which other functions may share."""
        generator = self._loops.generator_at(caller) if is_generator(frame) else None
        code = frame.f_code
        self._cells(code, called(caller, code) if generator is None else function_of(generator))

    def _cells(self, code: pytypes.CodeType, function: object) -> None:
        if set(code.co_freevars) <= {"__class__"}:
            return
        if not isinstance(function, pytypes.FunctionType):
            raise Opaque
        for cell in function.__closure__ or ():
            self._value(cell)

    def _frame(self, frame: FrameType, loops: Loops) -> None:
        code = frame.f_code
        info = info_of(code)
        is_innermost = frame is loops.frame
        place = info.before(frame.f_lasti) if is_innermost else info.after(frame.f_lasti)
        self._note_variable(code, "")
        self._tokens.append((code, info.canonical(frame.f_lasti)))
        local = frame.f_locals
        cells = code.co_cellvars + code.co_freevars
        stack = stack_of(frame, is_innermost)
        loaded = info.loaded(stack)  # also on the stack, so never widened
        made = code.co_varnames[:1] if code.co_name == "__init__" else ()  # the result of a call
        for name in sorted(place.live.union(loaded, cells, made)):
            if name in local:
                self._note_variable(code, name)
                self._tokens.append(name)
                self._value(local[name], *(() if name in loaded else (frame, name)))
        self._note_variable(code, "")
        for slot, offset in stack or ():
            if slot is Slot.ITERATOR:
                self._value(loops.describe(frame, info.loops.get(offset, -1)))

    def _note_variable(self, code: pytypes.CodeType, name: str) -> None:
        self._variables.append(Variable(len(self._tokens), code.co_name, name))

    def _generator(self, value: pytypes.GeneratorType[Any, Any, Any]) -> None:
        """Reads one of the user's generators by the frame that waits in it."""
        self._tokens.append("generator")
        frame = value.gi_frame
        if frame is None:
            self._tokens.append("ended")
        elif frame in self._frames:
            self._tokens.append(self._frames.index(frame))
        elif is_users(frame) and waits_clean(value):
            self._cells(frame.f_code, function_of(value))
            self._frame(frame, self._loops)
        else:
            raise Opaque
