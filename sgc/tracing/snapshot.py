"""What the rest of a run depends on, at the beginning of a statement, in a form to compare.

Two runs at the same place whose snapshots have the same shape go on alike; where they hold
different abstract values, the block that both go on with takes a parameter. Taken of the live
variables of every running function of the user's, the streams they reach, and the loops they are
in. What cannot be looked into makes a run go on alone, which is always right.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import types as pytypes
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import FrameType
from typing import TYPE_CHECKING, Any

from sgc.ir.types import Type
from sgc.symbols import Symbol
from sgc.tracing.bytecode import Slot, Stack, info_of
from sgc.tracing.markers import has_marker, split_markers

if TYPE_CHECKING:
    from sgc.state import ProgramState
    from sgc.tracing.loops import Loops
    from sgc.tracing.tracer import TraceSession

MAX_VALUES = 20_000
_HEAP_TYPE = 1 << 9
_CONSTANTS = (type(None), bool, int, float, str, bytes, complex, range, re.Pattern, type(...))
# Functions that call others from where Python's frames cannot be seen.
_CALLERS = frozenset({
    "map", "filter", "sorted", "sort", "min", "max", "reduce", "next", "partial", "starmap",
})  # fmt: skip


class Opaque(Exception):
    """Something is there that cannot be looked into."""


Shape = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A value: its shape, and the symbols in it in order."""

    shape: Shape
    slots: tuple[Symbol, ...]

    @property
    def lone_type(self) -> Type | None:
        """The type of what is one abstract value and nothing more."""
        is_lone = len(self.slots) == 1 and self.shape in _LONE_SHAPES
        return self.slots[0].type if is_lone else None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """names: of each stream reached, its variables; own: those set on it."""

    whole: Part
    names: tuple[Mapping[str | None, Part], ...]
    own: tuple[tuple[str | None, ...], ...]
    facts: Mapping[Any, bool]
    dead: tuple[int, ...]  # streams nothing reaches any more, by number


@dataclass(frozen=True, slots=True)
class Unsure:
    """A variable that is a value of its own from a statement on.

    number: of the stream among those of the snapshot. given: the symbol that it was, None where
    it was not set. is_own: whether it is set on the stream itself.
    """

    number: int
    name: str | None
    type: Type
    given: str | None
    is_own: bool


@dataclass(frozen=True, slots=True)
class Widening:
    """What lets a run go on for another one too: its variables that may not be set, or may be
    other values than they are here, and the facts that both know.
    """

    names: tuple[Unsure, ...]
    facts: Mapping[Any, bool]


Mapped = dict[str, str | None]  # a symbol's name to that of another run; None: not set there


def match(ours: Snapshot, theirs: Snapshot) -> Mapped | None:
    """How `theirs` fits a block that was traced from `ours`; None if it does not.

    A name that ours has and theirs has not becomes *not set*. Facts that ours relies on must be
    known to theirs.
    """
    found: Mapped = {}
    if ours.whole.shape != theirs.whole.shape or not _pair(ours.whole, theirs.whole, found):
        return None
    for mine, other in zip(ours.names, theirs.names, strict=True):
        if not _match_names(mine, other, found):
            return None
    for mine_own, other_own in zip(ours.own, theirs.own, strict=True):
        if not set(other_own) <= set(mine_own):
            return None
    for fact, is_true in ours.facts.items():
        if theirs.facts.get(_moved(fact, found)) is not is_true:
            return None
    return found


def widen(ours: Snapshot, theirs: Snapshot) -> Widening | None:
    """How a run in the state `theirs` can go on for one in the state `ours` too, knowing less."""
    found: Mapped = {}
    back: Mapped = {}
    if ours.whole.shape != theirs.whole.shape or not _pair(ours.whole, theirs.whole, found):
        return None
    if not _pair(theirs.whole, ours.whole, back):
        return None
    unsure: list[Unsure] = []
    for number, (mine, other) in enumerate(zip(ours.names, theirs.names, strict=True)):
        own, other_own = set(ours.own[number]), set(theirs.own[number])
        for name in dict.fromkeys((*other, *mine)):
            part, there = mine.get(name), other.get(name)
            if part is not None and there is not None:
                if part.shape != there.shape or (name in own) != (name in other_own):
                    return None
                if not _pair(part, there, found):
                    return None
                if there.lone_type is None and not _pair(there, part, back):
                    return None
            known = there or part
            assert known is not None
            type_ = known.lone_type
            if type_ is not None:
                given = None if there is None else there.slots[0].name
                unsure.append(Unsure(number, name, type_, given, name in own | other_own))
            elif part is None or there is None:
                return None
    known_facts = {(_moved(fact, found), is_true) for fact, is_true in ours.facts.items()}
    kept = {slot.name for slot in theirs.whole.slots}
    facts = {
        fact: is_true
        for fact, is_true in theirs.facts.items()
        if (fact, is_true) in known_facts and _names_of(fact) <= kept
    }
    return Widening(tuple(unsure), facts)


def _names_of(fact: Any) -> set[str]:
    return {arg[1] for arg in fact[1] if arg[0] == "ref"}


def _match_names(
    mine: Mapping[str | None, Part], other: Mapping[str | None, Part], found: Mapped
) -> bool:
    if not other.keys() <= mine.keys():
        return False
    for name, part in mine.items():
        if name in other:
            if part.shape != other[name].shape or not _pair(part, other[name], found):
                return False
        elif part.lone_type is None or found.setdefault(part.slots[0].name, None) is not None:
            return False
    return True


def _pair(part: Part, other: Part, found: Mapped) -> bool:
    return all(
        mine.type == theirs.type and found.setdefault(mine.name, theirs.name) == theirs.name
        for mine, theirs in zip(part.slots, other.slots, strict=True)
    )


def _moved(fact: Any, found: Mapped) -> object:
    """A fact of ours in the names of the other run."""
    fn, args = fact
    return fn, tuple(("ref", found.get(a[1], a[1])) if a[0] == "ref" else a for a in args)


class Reader:
    """Reads one snapshot."""

    def __init__(self, session: TraceSession) -> None:
        self._session = session
        self._tokens: list[object] = []
        self._slots: list[Symbol] = []
        self._seen: dict[int, int] = {}
        self._keep: list[Any] = []
        self.states: list[ProgramState] = []
        self._names: list[dict[str | None, Part]] = []

    # -- the whole ------------------------------------------------------------------------

    def read(self, frames: list[FrameType], loops: Loops, last: Any = None) -> Snapshot:
        """frames: the user's, innermost first; last: what the program returns, at its end."""
        session = self._session
        for state in session.calling:
            self._value(state)
        self._value(session.scopes)
        for frame in reversed(frames):
            self._frame(frame, loops)
        self._check_exits(frames)
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
                self._value(state)  # at the end all are shown
        own = tuple(tuple(state._own) for state in self.states)
        whole = Part(tuple(self._tokens), tuple(self._slots))
        return Snapshot(whole, tuple(self._names), own, dict(session.facts), tuple(dead))

    def _check_exits(self, frames: list[FrameType]) -> None:
        """Only our own context managers may be open: what others hold is not known."""
        n_exits = 0
        for index, frame in enumerate(frames):
            stack = stack_of(frame, is_innermost=index == 0)
            n_exits += sum(slot is Slot.EXIT for slot, _ in stack or ())
        if n_exits != len(self._session.scopes):
            raise Opaque

    def _frame(self, frame: FrameType, loops: Loops) -> None:
        code = frame.f_code
        info = info_of(code)
        is_innermost = frame is loops.frame
        place = info.before(frame.f_lasti) if is_innermost else info.after(frame.f_lasti)
        self._tokens.append((code, frame.f_lasti))
        local = frame.f_locals
        cells = code.co_cellvars + code.co_freevars
        for name in sorted(place.live | set(cells)):
            if name in local:
                self._tokens.append(name)
                self._value(local[name])
        for slot, offset in stack_of(frame, is_innermost) or ():
            if slot is Slot.ITERATOR:
                self._value(loops.describe(frame, info.loops.get(offset, -1)))

    # -- values ---------------------------------------------------------------------------

    def _value(self, value: Any) -> None:
        if len(self._tokens) > MAX_VALUES:
            raise Opaque
        kind = type(value)
        if isinstance(value, Symbol):
            self._tokens.append("%")
            self._slots.append(value)
        elif isinstance(value, str):
            self._text(value)
        elif isinstance(value, (*_CONSTANTS, Enum)):
            self._tokens.append((kind, value, repr(value) if kind is float else ""))
        elif isinstance(value, (type, pytypes.ModuleType, pytypes.BuiltinFunctionType)):
            self._tokens.append(("is", id(value)))
            self._keep.append(value)
        elif value is self._session:
            self._tokens.append("session")
        elif id(value) in self._seen:
            self._tokens.append(("again", self._seen[id(value)]))
        else:
            self._seen[id(value)] = len(self._seen)
            self._keep.append(value)
            self._object(value)

    def _text(self, text: str) -> None:
        plain = str.__str__(text)
        if not has_marker(plain):
            self._tokens.append((str, plain))
            return
        self._tokens.append((type(text), "pieces"))
        for piece in split_markers(plain):
            if isinstance(piece, str):
                self._tokens.append(piece)
            else:
                self._value(self._session.symbol_of(piece))
        self._tokens.append("end")

    def _object(self, value: Any) -> None:
        from sgc.functions import Function
        from sgc.state import ProgramState

        kind = type(value)
        if kind in (list, tuple):
            self._tokens.append((kind, len(value)))
            for item in value:
                self._value(item)
        elif kind is dict:
            self._tokens.append((dict, len(value)))
            for key, item in value.items():
                self._value(key)
                self._value(item)
        elif kind in (set, frozenset):
            self._tokens.append((kind, len(value)))
            for item in sorted(value, key=repr):
                self._value(item)
        elif isinstance(value, ProgramState):
            self._state(value)
        elif isinstance(value, Function):
            self._tokens.append("program")
            self._value(value.python)
            self._value(dict(value.bind_arguments))
        elif isinstance(value, pytypes.FunctionType):
            self._function(value)
        elif isinstance(value, pytypes.MethodType):
            self._tokens.append("method")
            self._value(value.__func__)
            self._value(value.__self__)
        else:
            self._instance(value)

    def _function(self, value: pytypes.FunctionType) -> None:
        self._tokens.append(("function", value.__code__))
        self._value(value.__defaults__)
        self._value(value.__kwdefaults__)
        for cell in value.__closure__ or ():
            try:
                self._value(cell.cell_contents)
            except ValueError:
                self._tokens.append("empty")

    def _instance(self, value: Any) -> None:
        """An object of a class written in Python, by its attributes."""
        kind = type(value)
        for base in kind.__mro__:
            if base is not object and not base.__flags__ & _HEAP_TYPE:
                raise Opaque
        self._tokens.append(("object", id(kind)))
        self._keep.append(kind)
        for base in kind.__mro__:
            slots = base.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__"):
                    self._attribute(value, name)
        # Asked of `object` itself: an abstract value refuses what is not known of it.
        with contextlib.suppress(AttributeError):
            for name, item in object.__getattribute__(value, "__dict__").items():
                self._tokens.append(name)
                self._value(item)

    def _attribute(self, value: Any, name: str) -> None:
        with contextlib.suppress(AttributeError):
            item = object.__getattribute__(value, name)
            self._tokens.append(name)
            self._value(item)

    def _state(self, state: ProgramState) -> None:
        """A stream: its present state and what it is; its variables are kept apart."""
        self.states.append(state)
        self._tokens.append(("stream", state.function_name, tuple(state.roles), state._is_child))
        self._value(state.symbol)
        if state._is_child or state in self._session.calling:
            self._value(state.start)
        self._value(state._ret_value)
        self._names.append({name: self._part(value) for name, value in state._names.items()})

    def _part(self, value: Any) -> Part:
        """A value by itself."""
        tokens, slots, seen = self._tokens, self._slots, self._seen
        self._tokens, self._slots, self._seen = [], [], {}
        try:
            self._value(value)
            return Part(tuple(self._tokens), tuple(self._slots))
        finally:
            self._tokens, self._slots, self._seen = tokens, slots, seen


_LONE_SHAPES: set[Shape] = {("%",)}


def stack_of(frame: FrameType, is_innermost: bool) -> Stack | None:
    """What a frame's stack holds beside the call that it is in."""
    info = info_of(frame.f_code)
    if is_innermost:
        return info.before(frame.f_lasti).stack
    stack = info.after(frame.f_lasti).stack
    return None if not stack else stack[:-1]


def is_clean(frames: list[FrameType]) -> bool:
    """Whether nothing hides in the frames: the innermost is at the beginning of a statement, the
    others at one that is no more than the call of the next.
    """
    for index, frame in enumerate(frames):
        code = frame.f_code
        if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
            return False
        stack = stack_of(frame, is_innermost=index == 0)
        if stack is None or any(slot is Slot.OTHER for slot, _ in stack):
            return False
        if index and _CALLERS & set(code.co_names):
            return False
    return True
