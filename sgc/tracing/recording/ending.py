"""The tracer's session: streams in lists. A list gets the variables and the return value that a
stream has at its end, so that a list of the graph can hold them. If the program continues such a
stream, or asks it for more, the program is traced anew with lists that hold the streams themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from sgc.core.places import user_loc
from sgc.core.session import Stream
from sgc.core.stops import INTERPRET
from sgc.core.symbols import Symbol
from sgc.errors import TraceError
from sgc.ir.graph import Lit, Operand, Ref
from sgc.ir.types import LIVE, Type
from sgc.lang.joins import Gathered
from sgc.lang.state import ProgramState
from sgc.tracing.kinds.ended import EndedState
from sgc.tracing.kinds.row_types import RETURNED, holds_states
from sgc.tracing.paths.exploration import MustExplore
from sgc.tracing.pieces.made import Pieced
from sgc.tracing.recording.coding import Coding
from sgc.tracing.values.abstract import abstract

# The ops and functions that may be used on a value that holds streams.
_HOLDING = ("list", "record")
_GIVING = tuple(map(Lit, ("item", "push", "plus", "slice", "put", "insert", "without", "times")))
_TELLING = tuple(map(Lit, ("len", "truth")))
_HINT = f"keep what is needed of it, such as s['x'], in a list of its own; or {INTERPRET}"
_COMPUTING = ("compute", "attempt")


class Ending(Coding):
    """A tracer's session whose lists hold ended streams.

    _types: the types of values of the graph, as the trace knows them.
    """

    _types: dict[str, Type]

    def __init__(self, program: str) -> None:
        super().__init__(program)
        self._ended: set[int] = set()  # ids of streams that lists or code hold
        self._of_states: set[str] = set()  # values of the graph that hold streams
        self._lives: dict[int, tuple[ProgramState, Any]] = {}  # live objects for streams, by id

    def listed(self, value: Any) -> Any:
        if type(value) is tuple:
            parts = tuple(map(self.listed, value))
            is_same = all(one is other for one, other in zip(parts, value, strict=True))
            return value if is_same else parts
        return self._ended_of(value) or value

    def _ended_of(self, value: Any, are_copied: bool = False) -> EndedState | None:
        """A stream as an ended stream, if it may have ended. are_copied: whether each read of a
        list variable returns a new list."""
        if type(value) is not ProgramState or not self._may_end(value, are_copied):
            return None
        names = [name for name in value._names if name is not None]
        self.note_asked(names)
        self._ended.add(id(value))
        found = {name: value._read(value._names[name]) for name in names}
        return EndedState({RETURNED: value._ret_value, **found})

    def as_live(self, value: Any) -> Any:
        """An argument of code; for a stream that has ended, a live object with its variables."""
        if type(value) is tuple:
            parts = tuple(map(self.as_live, value))
            is_same = all(one is other for one, other in zip(parts, value, strict=True))
            return value if is_same else parts
        if type(value) is not ProgramState:
            return value
        if id(value) not in self._lives:
            if self.path is None:
                self.end(MustExplore())  # only paths tell which streams have ended
            state = self._ended_of(value, are_copied=True)
            if state is None:
                return value
            self._lives[id(value)] = value, self._live_of(state)
        return self._lives[id(value)][1]

    def held_of(self, state: Stream) -> tuple[Symbol, ...] | None:
        if id(state) not in self._ended:
            return None
        return (self._lives[id(state)][1].symbol,) if id(state) in self._lives else ()

    def _live_of(self, state: EndedState) -> Any:
        parts = dict(state.parts)
        returned = parts.pop(RETURNED)
        fields: dict[str, Operand] = {}
        if returned is not None:
            fields["returned"] = self.operand(returned)
        if parts:
            fields["keys"] = tuple(map(Lit, parts))
            fields["items"] = tuple(map(self.operand, parts.values()))
        (symbol,) = self.emit("future", [("v", LIVE)], **fields)
        return abstract(symbol, self)

    def _may_end(self, state: ProgramState, are_copied: bool) -> bool:
        if self.path is None or self.sites.streams_told is not None:
            return False
        if state is self.states[0] or state in self.calling or self.late_names(state) is not None:
            return False
        values = [
            each for each in state._names.values() if not are_copied or type(each) is not Gathered
        ]
        return not any(map(self._is_joined, values))

    def _is_joined(self, value: Any) -> bool:
        """Whether a variable is a join's result: a list, new at each read, or a winner's value."""
        is_symbol = isinstance(value, Symbol)
        op = self.made.get(value.name, ("", {}))[0] if is_symbol else ""
        return isinstance(value, Gathered) or op == "winner_value"

    def note_set(self, state: Stream) -> None:
        if id(state) in self._ended:
            self.refuse_ended("is given a variable")

    def refuse_ended(self, what: str) -> NoReturn:
        if self.sites.streams_told is None:
            where = str(user_loc() or "")
            message = f"a stream in a list known only at run time {what}"
            self.sites.streams_told = TraceError(message, where=where, hint=_HINT)
        self.end(Pieced())

    def told_type(self, operand: Operand) -> Type | None:
        return self._types.get(operand.name) if isinstance(operand, Ref) else None

    def note_states(self, symbols: Iterable[Symbol], all_do: bool = False) -> None:
        """Notes, by their types, which of these values hold streams."""
        self._of_states |= {each.name for each in symbols if all_do or holds_states(each.type)}

    def check_states(self, op: str, fields: Mapping[str, Operand], used: Iterable[str]) -> bool:
        """Whether an op gets values that hold streams; ends the trace if the op would see that in
        the graph these are other values."""
        if not self._of_states or self._of_states.isdisjoint(used):
            return False
        fn = fields.get("fn")
        if op not in _HOLDING and not (op in _COMPUTING and fn in _GIVING + _TELLING):
            self.refuse_ended("is used as a value")
        return op in _HOLDING or (op == "compute" and fn in _GIVING[1:])
