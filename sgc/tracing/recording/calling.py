"""The tracer's session: maps, forks, and the arguments on which their numbers depend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sgc.core.symbols import Symbol
from sgc.ir import types
from sgc.ir.graph import Lit, Operand, Ref
from sgc.ir.op_specs import Flag
from sgc.ir.ops import OPS
from sgc.lang.definition import Definition
from sgc.tracing.callees import Callee, Callees, Gathers, Unmet, Wanted
from sgc.tracing.maps import map_traced
from sgc.tracing.paths.blame import blamed, made_from
from sgc.tracing.paths.exploration import MustExplore
from sgc.tracing.recording.values import Values
from sgc.tracing.values.abstract import (
    INTERPRET,
    AbstractNumber,
    pieces_of,
    stop,
)
from sgc.tracing.values.computing import whole
from sgc.tracing.values.open_fork import OpenFork, open_fork

if TYPE_CHECKING:
    from sgc.lang.maps import MapCall, MappedStates
    from sgc.lang.state import ProgramState

_NUMBERS = (types.INT, types.FLOAT, types.BOOL)


class Calling(Values):
    """A tracer's session that maps programs and forks streams.

    callees: the programs that are mapped. gathers: the types that a program that maps this one
    needs. sizes: arguments that decide how many streams and texts there are.
    """

    callees: Callees | None
    gathers: Gathers
    sizes: set[str]

    def open_fork(self, stream: ProgramState, size: Any) -> OpenFork:
        return open_fork(self, stream, size)

    def large_fork(self, stream: ProgramState, size: int) -> OpenFork | None:
        if self.path is None or not self.sites.forks.is_open(size):
            return None
        return OpenFork(self, stream, self.compute("int", size))

    def note_size(self, size: Any) -> frozenset[str]:
        if not isinstance(size, AbstractNumber):
            whole(size)  # stops the trace, or raises Python's own error
            return frozenset()
        found = self._numbers_among(made_from([size.symbol.name], self.made))
        self.sizes |= found
        return found

    def map(self, call: MapCall) -> MappedStates:
        return map_traced(self, call)

    def as_value(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.as_value, value))
        if isinstance(value, dict):
            return {key: self.as_value(item) for key, item in value.items()}
        if not self.is_abstract(value):
            self.note_outside(value)
            return value
        if not isinstance(value, str) or len(pieces_of(value)) == 1:
            return value
        operand = self._text(value)
        assert isinstance(operand, Ref)
        # As for the result of `str`, no part of the text counts as the program's own.
        return self.compute("str", Symbol(operand.name, types.TEXT))

    def callee(
        self, function: Definition, types_of: Mapping[str, types.Type], bound: Mapping[str, Any]
    ) -> Callee:
        """The callee for a mapped function; ends the trace if the function is not traced yet."""
        assert self.callees is not None
        turns = function.max_turns or self.stack.max_turns
        wanted = Wanted(function, types_of, bound, self.stack.heal, turns)
        found = self.callees.find(wanted)
        if found is None:
            self.end(Unmet(wanted))
        return found

    def note_unknown(self, number: int, name: str) -> None:
        """Ends the trace if an untraced path of a called program may set a name."""
        assert self.callees is not None
        callee = self.callees.number(number)
        if callee.others is not None:
            self.end(Unmet(callee.wanted, name))

    def refuse_handled(self, name: str) -> None:
        """Stops the trace if the program handles errors that a mapped call may raise."""
        if self.path is None:
            self.end(MustExplore())  # handlers are known only while exploring
        if self.loops is not None and self.loops.is_caught():
            stop(
                f"an error that {name} may raise in sgc.map is handled by the program",
                hint=f"handle it in {name} itself, and return what tells of it; or " + INTERPRET,
            )

    def _tell_caller(self, op: str, fields: Mapping[str, Operand]) -> None:
        """Records the types of variables and return values for a program that maps this one."""
        if op == "return":
            self.gathers.returns.add(self.outer_type(fields["value"]))
        elif op == "publish" and fields["stream"] == Ref(self.states[0].symbol.name):
            keys, items = fields["keys"], fields["items"]
            assert isinstance(keys, tuple)
            assert isinstance(items, tuple)
            for key, item in zip(keys, items, strict=True):
                assert isinstance(key, Lit)
                self.gathers.names.setdefault(str(key.value), set()).add(self.outer_type(item))

    def blamed(self, traceback: TracebackType | None) -> set[str]:
        """The symbols that were inputs of the operation that stopped the trace."""
        return blamed(self, self.made, traceback)

    def needed(self, traceback: TracebackType | None) -> frozenset[str]:
        """The numeric arguments from which the values that stopped the trace were computed; empty
        if they also depend on anything but arguments."""
        return self._numbers_among(self.blamed(traceback))

    def numbers_tested(self, tests: Iterable[str]) -> frozenset[str]:
        """The numeric arguments on which some of these tests depend, if on nothing else."""
        return frozenset().union(
            *(self._numbers_among(made_from([test], self.made)) for test in tests)
        )

    def _numbers_among(self, found: Set[str]) -> frozenset[str]:
        begin = {name for name in found if not self._is_computed(name)}
        if not all(map(self.is_parameter, begin)):
            return frozenset()
        return frozenset(name for name in begin if self._types[name] in _NUMBERS)

    def _is_computed(self, name: str) -> bool:
        op = self.made.get(name, ("", {}))[0]
        return op in OPS and Flag.PURE in OPS[op].flags
