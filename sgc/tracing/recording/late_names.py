"""The tracer's session: variables whose names are known only at run time, as in `gen(f"a{i}")`.

A stream of a function that sets such names has a list of the graph: pairs of a name and its value,
in the order in which they were set. A plain name that may equal such a name is in the list too. So
the names must be known first: the program is traced anew with each name that is found.
"""

from __future__ import annotations

from typing import Any

from sgc.core.markers import CLOSE, has_marker
from sgc.core.places import here
from sgc.core.session import Stream
from sgc.core.stops import INTERPRET, stop
from sgc.core.symbols import Symbol
from sgc.core.watching import unhooked
from sgc.errors import UnknownVariable
from sgc.ir.graph import Lit, Operand, Ref
from sgc.ir.types import JSON, Kind, Type
from sgc.lang.state import ProgramState
from sgc.tracing.kinds.name_patterns import PAIRS, NamePattern, joined_type
from sgc.tracing.kinds.text_types import domain
from sgc.tracing.pieces.made import Pieced
from sgc.tracing.recording.ending import Ending
from sgc.tracing.values.abstract import abstract, pieces_of
from sgc.tracing.values.computing import computed

# Keys among a stream's names, where merging finds them: its own list, and a child's trunk's list.
OWN, OF_TRUNK = f"{CLOSE}own", f"{CLOSE}trunk"
_KINDS = frozenset({Kind.TEXT, Kind.CHOICE, Kind.INT, Kind.FLOAT, Kind.BOOL})
PLAIN_NAMES = f"use plain names for it; or {INTERPRET}"


class LateNames(Ending):
    """A tracer's session whose streams may have names that are known only at run time."""

    @unhooked
    def begun(self, state: Stream) -> None:
        assert isinstance(state, ProgramState)
        names = state._names
        lists = [names.pop(key) for key in (OF_TRUNK, OWN) if key in names]
        if lists:
            names[OF_TRUNK] = lists[0] if len(lists) == 1 else self._pairs("plus", *lists)
        if _kind(state) in self.sites.late_names:
            names[OWN] = self.emit("list", [("names", PAIRS)], items=())[0]
            state._own[OWN] = None

    def late(self, state: Stream, name: object, is_set: bool = False) -> LateNames | None:
        return self if self._is_late(state, name, is_set) else None

    def _is_late(self, state: Stream, name: object, is_set: bool) -> bool:
        if not isinstance(name, str):
            return False
        options = (name,) if not has_marker(name) else None if is_set else self._options_of(name)
        if options is None:
            return self.sites.may_name_late
        return any(each.may_be(option) for each in self._patterns(state) for option in options)

    @unhooked
    def late_variable(self, state: Stream, name: str) -> Any:
        found = self._found(state, name)
        if found is None:
            raise UnknownVariable(f"no variable {self.shown(name)} has been set", where=here())
        types = self._types_of(state, name)
        type_ = types[0]
        for each in types[1:]:
            type_ = joined_type(type_, each)
        return computed(self, "named", found, name, type_=type_)

    @unhooked
    def has_late(self, state: Stream, name: str) -> bool:
        return self._found(state, name) is not None

    @unhooked
    def set_late(self, state: Stream, name: str, value: Any) -> None:
        assert isinstance(state, ProgramState)
        operand = self.operand(value) if isinstance(value, Symbol) else self.scalar(value)
        type_ = self.type_of(operand)
        if type_.kind not in _KINDS:
            stop(
                f"a name made of a value known only at run time is given {_shown(type_)}",
                PLAIN_NAMES,
            )
        named = self.late_name(name)
        self._note(state, name, type_)
        items = (named, operand)
        (pair,) = self.emit("record", [("v", JSON)], keys=(), items=items)
        state._names[OWN] = self._pairs("push", state._names[OWN], pair)

    def late_name(self, name: str) -> Operand:
        if has_marker(name) and self._pattern(name).may_be_empty:
            stop(
                "a variable's name is a value known only at run time, which may be no name",
                hint=f'let it begin with a plain text, as in f"of_{{x}}"; or {INTERPRET}',
            )
        return self.scalar(name)

    def late_names(self, state: Stream) -> Operand | None:
        assert isinstance(state, ProgramState)
        return Ref(state._names[OWN].name) if OWN in state._names else None

    def refuse_late(self, state: Stream, what: str) -> None:
        if self.late_names(state) is not None:
            stop(f"{what} where names are made of values known only at run time", PLAIN_NAMES)

    # -- the names that there may be -------------------------------------------------------

    def _found(self, state: Stream, name: str) -> Any:
        """The list that holds a name; None on the path where it does not."""
        assert isinstance(state, ProgramState)
        self._note(state, name, None)
        lists = [state._names[key] for key in (OF_TRUNK, OWN) if key in state._names]
        pairs = lists[0] if len(lists) == 1 else self._pairs("plus", *lists)
        found = abstract(pairs, self)
        return found if self.attempt("named", found, name) is None else None

    def _pairs(self, fn: str, *args: Symbol) -> Symbol:
        operands = tuple(Ref(each.name) for each in args)
        return self.emit("compute", [("names", PAIRS)], fn=Lit(fn), args=operands)[0]

    def _options_of(self, name: str) -> tuple[str, ...] | None:
        """The texts that a name may be, as for a choice; None if they are not known."""
        pieces = pieces_of(name)
        lone = pieces[0] if len(pieces) == 1 else ""
        return None if isinstance(lone, str) else domain(self.symbol_of(lone), self)

    def _pattern(self, name: str) -> NamePattern:
        return NamePattern.of(map(self._part, pieces_of(name)))

    def _part(self, piece: str | int) -> str | Type | tuple[str, ...]:
        """A plain part of a name, the texts that a part may be, or its type."""
        if isinstance(piece, str):
            return piece
        symbol = self.symbol_of(piece)
        return domain(symbol, self) or symbol.type

    def _patterns(self, state: Stream) -> list[NamePattern]:
        """The patterns of names of a function's streams and their children."""
        found = self.sites.late_names
        if not found:
            return []
        kinds = ((state.function_name, is_child) for is_child in (False, True))
        return [pattern for kind in kinds for pattern in found.get(kind, ())]

    def _types_of(self, state: Stream, name: str) -> list[Type]:
        """The types of the values that such a name may have."""
        found = self.sites.late_names
        pattern = self._pattern(name)
        of_both = [found.get((state.function_name, is_child), {}) for is_child in (False, True)]
        types = [
            type_
            for patterns in of_both
            for each, type_ in patterns.items()
            if type_ is not None and each.may_equal(pattern)
        ]
        return types or [JSON]

    def _note(self, state: Stream, name: str, type_: Type | None) -> None:
        """Notes such a name and the type of its value; ends a trace that did not know them."""
        before = self.sites.late_names.get(_kind(state), {})
        is_plain = not has_marker(name)
        alike = [each for each in self._patterns(state) if each.may_be(name)] if is_plain else []
        after = dict(before)
        for pattern in alike or [self._pattern(name)]:
            known = after.get(pattern)
            after[pattern] = known if type_ is None else joined_type(known, type_)
        if after != before:
            self.sites.late_names[_kind(state)] = after
            self.end(Pieced())


def _kind(state: Stream) -> tuple[str, bool]:
    assert isinstance(state, ProgramState)
    return state.function_name, state._is_child


def _shown(type_: Type) -> str:
    return "a list" if type_.kind is Kind.LIST else "a value whose type is known only at run time"
