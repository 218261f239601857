"""The runs of one trace: of a program's Python with abstract arguments, straight through or along
every path, and the state that these runs share. `tracer.py` decides when to trace anew.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from sgc.core.markers import Style
from sgc.core.places import is_users_own, own_texts
from sgc.core.stops import told_at
from sgc.core.symbols import Symbol
from sgc.errors import TraceError
from sgc.ir.graph import Block, Graph, Loc
from sgc.tracing import told_arguments
from sgc.tracing.body import copied, refuse_changed_arguments, run_traced
from sgc.tracing.callees import Callees, Gathers, Wanted
from sgc.tracing.convert.in_place import InPlace
from sgc.tracing.convert.source import function_of
from sgc.tracing.paths.apart import nests, tests_of, why_apart
from sgc.tracing.paths.assemble import assemble
from sgc.tracing.paths.endless import refuse_endless
from sgc.tracing.paths.exploration import (
    Budget,
    Exploration,
    Lines,
    Mark,
    NamesAsked,
    PathEnd,
    Report,
    Steps,
)
from sgc.tracing.paths.explore import Path, explore
from sgc.tracing.paths.loops import Fault, Loops
from sgc.tracing.paths.segments import Branch, Unexplored, leave
from sgc.tracing.pieces.choose import (
    chosen,
    chosen_in_python,
    stopped_at,
)
from sgc.tracing.pieces.in_python import MAX_PIECES as MAX_IN_PYTHON
from sgc.tracing.pieces.in_python import PiecesInPython
from sgc.tracing.pieces.late import draw_late_at, value_late_at
from sgc.tracing.pieces.made import MAX_PIECES, Pieced, PieceFound, Sites, WrongGuess
from sgc.tracing.recording.late_names import PLAIN_NAMES
from sgc.tracing.session import TraceSession
from sgc.tracing.snapshots.leaves import begin_young
from sgc.tracing.told_arguments import schemas_of
from sgc.tracing.values.abstract import INTERPRET, TraceStop, abstract
from sgc.tracing.watch.guards import guards_of
from sgc.tracing.watch.hook import watch

WORK_KEPT = 200_000
LINES_OF_RUN, LINES = 5_000, 2  # lines in the cost of a run; further lines in a step
MAX_KEPT = 4


class Trace:
    """The state that the runs of one trace share."""

    _stopped: TraceError | None = None  # why values were not widened
    _last_stop: TraceError | None = None
    _left: TraceError | None = None  # why a path is left to the interpreter
    _spent: TraceError | None = None  # the error of a budget that did not suffice
    _last: TraceSession | None = None  # the session of the last run
    _unnamed: TraceError | None = None  # why names must be known
    _may_guess = True
    is_taken = False  # whether the program gets this trace's graph
    _unguessed: Sites | None = None  # the pieces that were known before the first guess

    def __init__(
        self,
        wanted: Wanted,
        is_strict: bool,
        callees: Callees,
        in_place: InPlace,
        leaves: bool,
        in_python: PiecesInPython | None,
        no_code_at: frozenset[str] = frozenset(),
        lines: Lines | None = None,
    ) -> None:
        self._lines = lines
        self._leaves, self.is_leaving = leaves, False
        self.in_place, self.steps = in_place, Steps()
        self.sites = Sites(in_python=in_python, no_code_at=no_code_at)
        self.sizes: set[str] = set()  # arguments that decide how many streams and texts there are
        self.function, self.callees, self.gathers = wanted.function, callees, Gathers()
        self._bound, self._is_strict = wanted.bound, is_strict
        self._heal, self._max_turns = wanted.heal, wanted.max_turns
        function, known, bound = wanted.function, wanted.types, wanted.bound
        self._free = [
            replace(p, type=known[p.name], is_typed=True, has_default=False)
            if p.name in known
            else p
            for p in function.signature.parameters
            if p.name not in bound
        ]
        self._schemas = schemas_of(self._free, wanted)
        self._own_texts = {id(text): text for text in own_texts(self.function.python)}

    def may_name(self, error: TraceError) -> bool:
        """After a stop, whether to trace anew with names that must be known while tracing: in a
        loop of few turns, the values of which names are made may be known."""
        if self._unnamed is not None or error.hint != PLAIN_NAMES:
            return False
        self._unnamed, self.sites.may_name_late = error, False
        self.sites.late_names.clear()
        return True

    def told_of(self, error: TraceError) -> TraceError:
        """The error to raise."""
        return self._unnamed or self.sites.told.get(error.where, error)

    def may_leave(self, error: TraceError) -> bool:
        """After a stop, whether the interpreter may continue after stops from now on."""
        may = self._leaves and not self.is_leaving and error is self._last_stop
        self.is_leaving = self.is_leaving or may
        return may

    def _guess(self) -> None:
        """Keeps the pieces that are known for certain, before the trace continues with a guess."""
        if not self.sites.is_guessed:
            self._unguessed = self.sites.copy()
            self.sites.is_guessed = True

    def take_back_guesses(self) -> None:
        """Goes back to the pieces that were known for certain, to continue without guesses."""
        assert self._unguessed is not None
        self.sites, self._may_guess = self._unguessed, False

    def straight(self, style: Style = Style.SHORT) -> Graph:
        """The graph of a short program without decisions; raises MustExplore for other programs."""
        session, given = self._session(style)
        try:
            self._run(session, given)
        finally:
            session.forget_frames()
        return self._graph(session, (Block("entry", (), tuple(session.nodes)),))

    def explored(
        self,
        budget: Budget,
        is_full: bool,
        report: Report,
        is_merging: bool = True,
        style: Style = Style.SHORT,
        is_first: bool = True,
    ) -> Graph:
        """The graph of a program with all its paths. is_first: whether the trace may guess, because
        a second trace will tell whether the guess was right."""
        asked: Collection[str | None] = ()
        kept: frozenset[str] = frozenset()
        self._stopped = self._spent = None
        while True:
            self._left = None
            nearest = self.sites.is_nearest_first
            exploration = Exploration(
                budget, asked, is_merging, kept, nearest, is_first and self._may_guess,
                lambda: self.sites.may_take and bool(self.sites.waiting),
                lambda: self.sites.forks.may_open,
            )  # fmt: skip
            try:
                return self._explored(exploration, is_full, report, style)
            except NamesAsked:
                asked = exploration.asked
            except TraceError as error:
                if self.sites.is_guessed:
                    raise WrongGuess from error
                if error.needs or error is self._stopped:  # no widened value is to blame
                    raise
                is_last = len(kept) >= MAX_KEPT  # otherwise many leaves would take a trace each
                needed = (exploration.labels() if is_last else exploration.needed()) - kept
                if not needed:
                    raise
                # The leaves' exact values are needed, so the loops around them do not merge. If
                # this costs much, exploring seldom ends, so the budget is smaller.
                kept |= needed
                self._stopped = self._stopped or error
                budget = replace(budget, work=min(budget.work, WORK_KEPT))
            finally:
                self.steps.n += exploration.work
                exploration.forget()

    def _explored(
        self, exploration: Exploration, is_full: bool, report: Report, style: Style
    ) -> Graph:
        first, _ = self._session()

        def once(path: Path, mark: Mark) -> bool:
            shared = dict(first.callers), dict(first.retyped), set(first.images)
            try:
                run(path)
            except PieceFound:
                if not exploration.take_back(mark):
                    raise
                self._guess()
                first.callers, first.retyped, first.images = shared
                return False
            return True

        def run(path: Path) -> None:
            begin_young()
            session, given = self._session(style)
            session.path, session.namer = path, exploration.namer
            session.callers = first.callers
            session.retyped, session.images = first.retyped, first.images
            for parameter in self._free:
                session.namer.take(parameter.name)
            session.retired = path.retired() if path.is_fresh else set()
            loops = Loops(
                sys._getframe(),
                lambda: path.answers,
                lambda: len(session.states),
                session.at_statement,
                session.before_line,
                session.is_asked,
                session.events,
            )
            session.loops, self._last = loops, session
            loops.start()
            try:
                self._run(session, given)
            except PathEnd:
                return
            except Fault as fault:
                raise fault.error from None
            except TraceError as error:
                if not self.is_leaving or not session.leave(error, self.function.loc):
                    raise
                self._left = self._left or error
                return
            finally:
                exploration.work += max(0, loops.n_events - LINES_OF_RUN) // LINES
                loops.stop()
                session.forget_frames()
            path.stop()

        spent = explore(exploration, once)
        report.n_runs, report.work = exploration.n_runs, exploration.work
        report.pruned = tuple(exploration.pruned)
        if exploration.is_hasty:
            self._guess()
            self.sites.take_waiting()
            raise Pieced
        if spent and (self.sites.forks.open() or self.sites.take_waiting()):
            raise Pieced
        if spent and self.sites.is_guessed:
            raise WrongGuess
        if spent and self._stopped is not None and self._leaves and not self.is_leaving:
            # The graph ends at that stop, and values before it are widened.
            self._last_stop = self._stopped
            raise self._stopped
        if spent:
            self._cut(exploration, spent, is_full)
            report.deopt = spent
        elif self._left is not None:
            if exploration.takes_first:
                raise self._left
            report.deopt = self._left.message
        refuse_endless(exploration.entry, self.function)
        blocks = assemble(exploration.entry, exploration.namer, first.callers)
        return self._graph(first, blocks)

    def _cut(self, exploration: Exploration, spent: str, is_full: bool) -> None:
        """Leaves the arms beyond the budget to the interpreter."""
        if is_full and self._spent is not None:  # it says why the paths stayed apart
            raise self._spent
        if is_full and self.sites.streams_told is not None:
            self._spent = self.sites.streams_told
            raise self._spent
        if self._stopped is not None:
            spent = f"{spent}, as {self._stopped.where}: {self._stopped.message}"
        if is_full:
            why = "" if self._stopped is not None else why_apart(exploration)
            self._spent = TraceError(
                f"{self.function.name} has {spent}{why}",
                where=str(self._left_at(exploration.left[0])),
                hint="give @sgc.function(max_turns=N) to a loop without a bound, split the "
                "program, or compile it without --full-graph",
            )
            if nests(exploration) and self._last is not None:  # an argument may decide the depth
                self._spent.needs = self._last.numbers_tested(tests_of(exploration))
            raise self._spent
        if exploration.takes_first:
            raise TraceError(
                f"{self.function.name} has {spent}, and a join that takes the first children, "
                "from which the interpreter could not continue",
                where=str(self.function.loc or ""),
                hint="give its loops bounds, or run it with --interpret",
            )
        for item in exploration.left:
            leave(item.arm, spent, self._left_at(item))

    def _left_at(self, item: Unexplored) -> Loc:
        """The line of the test that an arm belongs to."""
        test = item.segments[-1].end
        return (test.loc if isinstance(test, Branch) else None) or self.function.loc

    def _session(self, style: Style = Style.SHORT) -> tuple[TraceSession, dict[str, Any]]:
        names = [parameter.name for parameter in self._free]
        session = TraceSession(self.function.name, names, self._is_strict, self.sites, self._lines)
        session.style = style
        session.note_own(self._own_texts)
        session.note(self._bound)
        session.callees, session.gathers = self.callees, self.gathers
        session.in_place, session.sizes = self.in_place, self.sizes
        session.stack.default_heal = self._heal
        session.stack.default_max_turns = self._max_turns
        given = {name: copied(value) for name, value in self._bound.items()}
        for parameter in self._free:
            session.namer.take(parameter.name)
            symbol = Symbol(parameter.name, told_arguments.type_of(parameter, self._schemas))
            session.note_type(symbol)
            given[parameter.name] = abstract(symbol, session)
        return session, given

    def _run(self, session: TraceSession, given: dict[str, Any]) -> None:
        session.events.root, before = sys._getframe(), sys.gettrace()
        if session.path is None:
            session.events.start()
        try:
            self._run_watched(session, given)
        finally:
            sys.settrace(before)
            session.stopped_places = ()
            session.put_back()

    def _run_watched(self, session: TraceSession, given: dict[str, Any]) -> None:
        try:
            with watch(is_waiting=session.path is not None and not session.path.is_fresh):
                run_traced(self.function, session, given, self._schemas)
                session.events.end()
                with told_at(self.function.loc):
                    refuse_changed_arguments(self._bound, given)
        except TraceStop as stopped:
            self._choose(session, stopped)
            if session.path is not None:
                session.path.exploration.blamed = session.blamed(stopped.__traceback__)
            self._last_stop = error = (session.stopped or stopped).error
            error.needs = session.needed(stopped.__traceback__)
            raise error from None
        except Exception:
            if session.stopped is not None:
                self._choose(session, session.stopped)
                self._last_stop = session.stopped.error
                raise self._last_stop from None
            if session.ended is not None:
                raise session.ended from None
            raise
        if session.stopped is not None:
            self._choose(session, session.stopped)
            self._last_stop = session.stopped.error
            raise self._last_stop
        if session.ended is not None:
            raise session.ended

    def _choose(self, session: TraceSession, stopped: TraceStop) -> None:
        """If the code that stopped the trace only computes with data, makes it a piece and ends the
        run by PieceFound."""
        if len(self.sites.pieces) >= MAX_PIECES or session.stopped not in (None, stopped):
            return
        if self.sites.is_live:  # code would copy objects
            return
        places = [*stopped_at(stopped.__traceback__)]
        if not any(is_users_own(each.f_code, each.f_globals) for each, _ in places):
            places = [*session.stopped_places]  # a library has handled the stop
        self.sites.has_lost_order = False
        with session.active():
            piece = chosen(session, places)
        if piece is not None:
            self.sites.pieces[piece.key] = piece
            raise PieceFound
        if self.sites.has_lost_order:
            where = stopped.error.where
            self.sites.told[where] = TraceError(_LOST_ORDER, where=where, hint=_LOST_ORDER_HINT)
        draw_late_at(session, places)
        value_late_at(session, places)
        known = self.sites.in_python
        if known is not None and len(known.found) < MAX_IN_PYTHON:
            with session.active():
                its = chosen_in_python(session, places, function_of)
            if its is not None and known.is_noting:
                known.noted = True
            elif its is not None:
                if session.sites.is_guessed:
                    raise WrongGuess
                known.found[its.piece.key] = its
                raise Pieced

    def _graph(self, session: TraceSession, blocks: tuple[Block, ...]) -> Graph:
        params = tuple(told_arguments.param_of(parameter, session) for parameter in self._free)
        told = told_arguments.guards_of(self._schemas, self._free)
        guards = guards_of(self.function, self._bound) + told
        called = tuple(self.callees.graphs)
        return Graph(self.function.name, params, blocks, guards, called=called)


_LOST_ORDER = "the order of a set is seen, which the set in a compiled program would not have"
_LOST_ORDER_HINT = "go over sorted(xs), or use a list or dict in its place; or " + INTERPRET
