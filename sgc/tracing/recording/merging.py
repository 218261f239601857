"""Paths at the beginning of a statement: a path continues, merges with another, or widens it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from random import Random
from types import FrameType
from typing import Any, NoReturn

from sgc.core.places import user_loc_of
from sgc.core.symbols import Symbol
from sgc.ir.graph import Lit, Loc
from sgc.tracing.code.bytecode import info_of
from sgc.tracing.code.frames import Opaque, stack_of
from sgc.tracing.kinds.row_types import OptionalType
from sgc.tracing.maps import MapRecorder
from sgc.tracing.paths.exploration import PathEnd
from sgc.tracing.paths.explore import Path
from sgc.tracing.paths.facts import Facts
from sgc.tracing.paths.loops import Loops
from sgc.tracing.paths.naming import Made
from sgc.tracing.paths.segments import Widened
from sgc.tracing.snapshots.leaves import Place, are_iterated
from sgc.tracing.snapshots.reader import Reader
from sgc.tracing.snapshots.snapshot import Snapshot, Widening
from sgc.tracing.values.abstract import abstract
from sgc.tracing.values.json.abstract_object import AbstractObject
from sgc.tracing.values.json.optional import without_none

WIDENED = "widened"  # the op noted for widened values


class Merging(MapRecorder):
    """A tracer's session whose paths merge.

    path: the current path; None for a program without decisions. loops: the loops that the run is
    in. ended: the error that ended the run. is_testing: whether a join's predicate is being traced.
    made: the op and fields that made each value. n_collections: how often the garbage collector had
    run before this run.
    """

    path: Path | None
    loops: Loops | None
    ended: BaseException | None
    is_testing: bool
    made: dict[str, Made]
    n_collections: int
    is_quiet: bool = False  # whether the run came here before, without a node or test in between
    has_optional: bool = False  # whether a value that may be None was widened

    @abstractmethod
    def refuse_changed_objects(self) -> None:
        """Stops the trace if the program has changed an object outside itself."""

    @abstractmethod
    def note_type(self, symbol: Symbol) -> None: ...

    @abstractmethod
    def end(self, error: BaseException) -> NoReturn:
        """Ends this run of the program, even if a handler of the program swallows the error."""

    @abstractmethod
    def draw_late(self, generator: Random) -> None:
        """Traces the program anew with a generator's state as a value of the graph."""

    @abstractmethod
    def look_for_growing(self, frame: FrameType) -> None:
        """Notes values that grow, which become code if exploring takes too long."""

    def is_asked(self, frame: FrameType) -> bool:
        """Whether to look at the run's state at a line. Of the turns of a loop that build and
        decide nothing, a few are looked at: enough to find that it never ends."""
        assert self.path is not None
        assert self.loops is not None
        if not self.path.is_fresh:
            return self.loops.n_events in self.path.widened
        n_visits = self.path.n_visits((frame.f_code, frame.f_lasti))
        self.is_quiet = n_visits > 1
        return n_visits & (n_visits - 1) == 0  # at the turns 1, 2, 4, 8 and so on

    def at_statement(self, frames: list[FrameType], is_clean: bool = True) -> None:
        """Called when a statement begins: the run continues, or ends by merging with another run.
        is_clean: whether the frames hold no hidden value.
        """
        if self.ended is not None or self.is_over or self.path is None or self.loops is None:
            return
        if not self.path.exploration.is_merging:
            return
        self.held.note_old()
        if self.is_testing:  # the join's intermediate results are in no frame of the user's
            return
        if not is_clean:
            self.path.exploration.hidden[str(user_loc_of(frames[0]))] += 1
            return
        if self.path.is_fresh:
            self.look_for_growing(frames[0])
            self.reach(frames, None, user_loc_of(frames[0]))
        elif self.loops.n_events in self.path.widened:
            widened = self.path.widened[self.loops.n_events]
            self.retired = set(widened.retired)
            reader = Reader(self)
            if widened.leaves:
                reader.read(frames, self.loops)
            self._apply(widened, reader)

    def before_line(self, frame: FrameType) -> None:
        """Decides whether the variables that a line reads and that may be None are None."""
        if not self.has_optional or self.ended is not None or self.is_over or self.is_testing:
            return
        names = info_of(frame.f_code).read_on(frame.f_lineno)
        loaded = info_of(frame.f_code).loaded(stack_of(frame, is_innermost=True))
        local = frame.f_locals
        for name in sorted(names - loaded):
            value = local.get(name)
            if type(value) is AbstractObject and isinstance(value.symbol.type, OptionalType):
                Place(frame, name).put(without_none(value, value.symbol.type))

    def reach(self, frames: list[FrameType], last: Any, loc: Loc | None) -> None:
        assert self.path is not None
        assert self.loops is not None
        reader = Reader(self)
        try:
            snapshot = reader.read(frames, self.loops, last)
            self.path.exploration.work += reader.n_data
        except Opaque:
            self.path.exploration.work += reader.n_data + reader.n_tokens
            self.path.exploration.hidden[str(loc or "")] += 1
            return
        with self.located(loc):
            self._retire(snapshot.dead)
        if frames and self.path.cut():
            self.end(PathEnd())
        is_quiet = self.is_quiet and bool(frames)  # a return is no turn of a loop
        wider = None if is_quiet else self.path.widening(snapshot)
        if wider is None or self._is_iterated(snapshot, reader, wider[1]):
            if self.path.reach(snapshot, loc):
                self.refuse_changed_objects()
                self.end(PathEnd())
            return
        narrow, widening, view = wider
        self._refuse_drawn(reader, widening)
        widened = self._widen(reader, snapshot, widening)
        snapshot = Reader(self).read(frames, self.loops, last)
        self.path.replace(narrow, snapshot, view, widened, loc)

    def _is_iterated(self, snapshot: Snapshot, reader: Reader, widening: Widening) -> bool:
        """Whether a list to be widened is being iterated: its iterator would keep the old list."""
        leaves = snapshot.leaves
        lists = [
            n for n, _, _ in widening.leaves if leaves[n].is_list and leaves[n].data is not None
        ]
        values = [reader.places[n][0].value for n in lists]
        return any(are_iterated(values, self.n_collections))

    def _refuse_drawn(self, reader: Reader, widening: Widening) -> None:
        """Ends the trace if the paths differ in the numbers that a generator has drawn."""
        for number, _, _ in widening.leaves:
            holder = reader.places[number][0].holder
            if type(holder) is Random:
                self.draw_late(holder)

    def _widen(self, reader: Reader, snapshot: Snapshot, widening: Widening) -> Widened:
        """Widens the state: names may become unset, leaves become any value of their types, and
        facts are forgotten."""
        assert self.loops is not None
        names, leaves = [], []
        for unsure in widening.names:
            symbol = Symbol(self.namer.fresh(unsure.name or "v"), unsure.type)
            names.append((self.states.index(reader.states[unsure.number]), symbol, unsure))
        for number, type_, is_own in widening.leaves:
            symbol = Symbol(self.namer.fresh(reader.places[number][0].name), type_)
            leaves.append((number, symbol, replace(snapshot.leaves[number], is_own=is_own)))
        widened = Widened(
            self.loops.n_events, tuple(names), tuple(leaves), widening.facts,
            frozenset(self.retired),
        )  # fmt: skip
        self._apply(widened, reader)
        return widened

    def _apply(self, widened: Widened, reader: Reader) -> None:
        places = reader.places
        self.held.note_old()
        for number, symbol, leaf in widened.leaves:
            # The graph's list holds copies of objects that are also elsewhere.
            self.held.hold(symbol, reader.shared.get(number, ()))
            self.note_type(symbol)
            self.has_optional = self.has_optional or isinstance(symbol.type, OptionalType)
            if leaf.symbol is not None:
                self.note_widened(leaf.symbol, symbol)
            op = WIDENED if leaf.is_own else ""
            self.made[symbol.name] = (op, {"name": Lit(places[number][0].name)})
            before, value = places[number][0].value, abstract(symbol, self)
            self.held.replace(before, value)
            parts = (part.name for part in leaf.parts if isinstance(part, Symbol))
            self.held.derive([symbol], parts)
            for place in places[number]:
                place.put(value)
        for number, symbol, unsure in widened.names:
            self.note_type(symbol)
            self.made[symbol.name] = ("", {"name": Lit(unsure.name or "")})
            self.held.derive([symbol], [unsure.given] if unsure.given is not None else [])
            if unsure.known is not None:
                self.known[symbol.name] = unsure.known
            self.states[number].set_unsure(unsure.name, symbol, unsure.is_own)
        self.held.renew()  # replacing a value by a parameter is not a change
        self.facts = Facts(widened.facts)

    def _retire(self, dead: tuple[int, ...]) -> None:
        """Publishes the streams that the program can no longer reach."""
        assert self.path is not None
        self.path.is_publishing = True
        for number in dead:
            self.publish(self.states[number])
        self.path.is_publishing = False
        self.retired.update(dead)
        self.path.retire(dead)
