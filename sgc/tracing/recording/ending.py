"""The tracer's session: streams that a list holds. A list gets what is left of a stream when it
ends, its variables and its return value, so that a list of the graph can hold it. If the program
goes on with such a stream, or asks it for more, it is traced anew with lists that hold streams.
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
from sgc.ir.types import Type
from sgc.lang.joins import Gathered
from sgc.lang.state import ProgramState
from sgc.tracing.kinds.ended import EndedState
from sgc.tracing.kinds.row_types import RETURNED, holds_states
from sgc.tracing.pieces.made import Pieced
from sgc.tracing.recording.coding import Coding

# What may be done with a value that holds streams: the ops that give such values, and functions.
_HOLDING = ("list", "record")
_GIVING = tuple(map(Lit, ("item", "push", "plus", "slice", "put", "insert", "without", "times")))
_TELLING = tuple(map(Lit, ("len", "truth")))
_HINT = f"keep what is needed of it, such as s['x'], in a list of its own; or {INTERPRET}"
_COMPUTING = ("compute", "attempt")


class Ending(Coding):
    """A tracer's session whose lists hold ended streams.

    _types: of values of the graph, as the trace knows them.
    """

    _types: dict[str, Type]

    def __init__(self, program: str) -> None:
        super().__init__(program)
        self._ended: set[int] = set()  # ids of streams that lists have
        self._of_states: set[str] = set()  # values of the graph that hold streams

    def listed(self, value: Any) -> Any:
        if type(value) is tuple:
            parts = tuple(map(self.listed, value))
            is_same = all(one is other for one, other in zip(parts, value, strict=True))
            return value if is_same else parts
        if type(value) is not ProgramState or not self._may_end(value):
            return value
        names = [name for name in value._names if name is not None]
        self.note_asked(names)
        self._ended.add(id(value))
        found = {name: value._read(value._names[name]) for name in names}
        return EndedState({RETURNED: value._ret_value, **found})

    def _may_end(self, state: ProgramState) -> bool:
        """Whether a stream may be taken for one that has ended."""
        if self.path is None or self.sites.streams_told is not None:
            return False
        if state is self.states[0] or state in self.calling or self.late_names(state) is not None:
            return False
        return not any(map(self._is_joined, state._names.values()))

    def _is_joined(self, value: Any) -> bool:
        """Whether a variable is what a join gave: a new list each time, or that of a winner."""
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
        """Notes which of these values hold streams, by their types."""
        self._of_states |= {each.name for each in symbols if all_do or holds_states(each.type)}

    def check_states(self, op: str, fields: Mapping[str, Operand], used: Iterable[str]) -> bool:
        """Whether an op is given values that hold streams; ends the trace where it would see that
        these are other values in the graph."""
        if not self._of_states or self._of_states.isdisjoint(used):
            return False
        fn = fields.get("fn")
        if op not in _HOLDING and not (op in _COMPUTING and fn in _GIVING + _TELLING):
            self.refuse_ended("is used as a value")
        return op in _HOLDING or (op == "compute" and fn in _GIVING[1:])
