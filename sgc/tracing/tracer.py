"""The tracer: runs a program's Python with abstract arguments and makes a graph of the nodes.

Code that cannot be traced is an error at the user's line, never a wrong graph. A second trace with
different markers must give the same graph; then `check.py` compares it with the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from sgc.core.garbage import fewer_collections
from sgc.core.markers import Style
from sgc.core.places import own_texts
from sgc.errors import SgcError, TraceError, VerifyError
from sgc.ir import types
from sgc.ir.graph import Graph
from sgc.ir.verify import verify
from sgc.lang.definition import Definition
from sgc.tracing.callees import Callees, Gathers, Unmet, Wanted, narrowed
from sgc.tracing.code.opcodes import refuse_unlisted
from sgc.tracing.convert.in_place import InPlace, Unconverted
from sgc.tracing.paths.exploration import (
    MAX_LINES,
    MAX_LINES_OF_CALL,
    WORK_ALONE,
    WORK_LIVE,
    WORK_OF_CALL,
    Budget,
    Lines,
    MustExplore,
    Report,
)
from sgc.tracing.pieces.effects.of_tools import OfTools
from sgc.tracing.pieces.in_python import PiecesInPython
from sgc.tracing.pieces.made import Pieced, WrongGuess
from sgc.tracing.told_arguments import refuse_images_as_texts
from sgc.tracing.trace import WORK_KEPT, Trace
from sgc.tracing.values.abstract import INTERPRET
from sgc.tracing.watch.addresses import refuse_addresses
from sgc.tracing.watch.objects import ChangedOutside, refuse_changed_rest

NEW_OBJECTS = 200_000  # between two collections of garbage: most objects live until a trace ends


def trace(
    function: Definition,
    bound: Mapping[str, Any] | None = None,
    types_of: Mapping[str, types.Type] | None = None,
    is_strict: bool = False,
    budget: Budget | None = None,
    is_full: bool = False,
    report: Report | None = None,
    schemas: Mapping[str, str] | None = None,
    leaves: bool = False,
    in_python: PiecesInPython | None = None,
    no_code_at: frozenset[str] = frozenset(),
    checked: Callable[[Graph], None] | None = None,
) -> Graph:
    """The graph of a program, with `bound` arguments fixed to Python values.

    types_of: types of arguments that are better known than by the signature; schemas: schemas of
    arguments. is_strict: the program is compiled as it is called, and images' files are read at
    each call. is_full: paths beyond the budget are an error, and not left to the interpreter.
    report: is filled in with the outcome of exploring.
    leaves: the interpreter also continues after a line that cannot be traced. in_python: is filled
    in with the pieces of the program that run in Python; if None, no piece does. no_code_at: lines
    of which nothing becomes code. checked: compares the graph with the program; if runs of the
    graph would fail, a graph with live objects is taken instead, provided that it passes.
    Raises TraceError at the user's line that cannot be traced, or if two traces differ;
    ArgumentError for unknown names in `bound`.
    """
    refuse_unlisted()
    bound, known = dict(bound or {}), dict(types_of or {})
    function.signature.check_bound(bound)
    for parameter in function.signature.static:
        if parameter.name not in known:
            bound.setdefault(parameter.name, parameter.default)

    wanted = Wanted(function, known, bound, None, function.max_turns, schemas or {})
    tracing = _Tracing(
        wanted, is_strict, leaves, in_python, no_code_at, budget or Budget(), is_full,
        report or Report(),
    )  # fmt: skip
    try:
        graph = tracing.first()
        if checked is None:
            return graph
        return _checked(graph, checked, tracing)
    except TraceError as error:
        error.where = error.where or str(function.loc)  # for an error without a line of its own
        raise


def _checked(graph: Graph, checked: Callable[[Graph], None], tracing: _Tracing) -> Graph:
    """A graph that passes the check: `graph`, or another graph if runs of `graph` would fail."""
    try:
        checked(graph)
    except TraceError as error:
        if tracing.is_live:
            tracing.may_be_live = False
            graph = tracing.first()
            checked(graph)
            return graph
        if not error.fails_at:
            raise
        with suppress(TraceError, VerifyError):  # the first error is raised
            found = tracing.another()
            if found is not None:
                checked(found)
                return found
        raise
    return graph


@dataclass(slots=True)
class _Tracing:
    """How one program is traced. is_live: whether the first graph has live objects; may_be_live:
    whether the first graph may have them."""

    wanted: Wanted
    is_strict: bool
    leaves: bool
    in_python: PiecesInPython | None
    no_code_at: frozenset[str]
    budget: Budget
    is_full: bool
    report: Report
    is_live: bool = False
    may_be_live: bool = True

    def first(self) -> Graph:
        """The graph of a program."""
        with self._begun() as begin:
            alive = begin(True) if self.may_be_live else None
            most = WORK_OF_CALL if self.is_strict else None
            found = _found(begin, alive, self.budget, self.is_full, self.report, most)
            self.is_live = alive is not None and alive.is_taken
            graph = narrowed(found)
        return self._verified(graph)

    def another(self) -> Graph | None:
        """The graph with live objects, if there is one."""
        with self._begun() as begin:
            found = _of_live_or_error(begin(True), self.budget, self.report)
        return self._verified(narrowed(found)) if isinstance(found, Graph) else None

    def _verified(self, graph: Graph) -> Graph:
        try:
            verify(graph)
        except VerifyError:
            refuse_images_as_texts(graph)
            raise
        refuse_addresses(graph, own_texts(self.wanted.function.python))
        return graph

    @contextmanager
    def _begun(self) -> Iterator[Begin]:
        """Begins traces of the program, whose mapped functions they share."""

        def traced(wanted: Wanted) -> tuple[Graph, Gathers]:
            each = begun(wanted)
            try:
                return _traced(each, self.budget, self.is_full, Report()), each.gathers
            except TraceError as error:
                error.needs = frozenset()  # these are the mapped function's arguments
                raise

        def begun(wanted: Wanted, is_whole: bool = False) -> Trace:
            leaves, in_python = self.leaves and not is_whole, None if is_whole else self.in_python
            made = Trace(
                wanted, self.is_strict, callees, in_place, leaves, in_python, self.no_code_at, lines
            )
            made.sites.of_tools = of_tools
            return made

        callees, of_tools = Callees(self.wanted.function, traced), OfTools()
        lines = Lines(MAX_LINES_OF_CALL if self.is_strict else MAX_LINES)
        with fewer_collections(NEW_OBJECTS), InPlace() as in_place:
            # Nothing else keeps the traces: their objects are freed before the next collection.
            yield partial(begun, self.wanted)


Begin = Callable[[bool], Trace]  # with whether the program's data may be live


def _found(
    begin: Begin,
    alive: Trace | None,
    budget: Budget,
    is_full: bool,
    report: Report,
    most: int | None,
) -> Graph:
    """The graph of a program. If the graph lacks a part of the program, takes long to find, or
    would take long to run, `alive` traces the program with live objects; its graph is taken if it
    is complete. most: steps after which a trace does not begin anew.
    """
    trace = begin(False)
    trace.steps.most = None if alive is None else WORK_ALONE
    first = budget if alive is None else replace(budget, work=min(budget.work, WORK_ALONE))
    found = _tried(trace, first, is_full, report)
    is_part = isinstance(found, TraceError) or bool(report.deopt) or trace.sites.spells
    live = None if alive is None or not is_part else _of_live_or_error(alive, budget, report)
    if isinstance(live, Graph):
        return live
    if is_part and alive is not None and trace.steps.n >= WORK_ALONE:
        # Anew: a trace whose steps are spent has made code of what it need not.
        report.deopt, last = "", begin(False)
        last.steps.most = most
        work = budget.work if most is None else min(budget.work, most // 2)  # of two equal traces
        found = _tried(last, replace(budget, work=work), is_full, report)
    if isinstance(found, TraceError):
        raise _told(found, live)
    return found


def _told(first: TraceError, live: SgcError | None) -> TraceError:
    """The error of a program of which neither trace is whole. live: that with live objects, which
    is told if they do what the first trace has stopped at."""
    is_lifted = any(each in first.message for each in _LIFTED)
    if not is_lifted or not isinstance(live, TraceError) or isinstance(live, ChangedOutside):
        return first
    if live.where in ("", first.where):
        return first
    live.needs, live.fails_at = first.needs, first.fails_at
    return live


_LIFTED = ("is looked up in a dict or set", ", a value out of JSON, is changed")


def _tried(trace: Trace, budget: Budget, is_full: bool, report: Report) -> Graph | TraceError:
    try:
        return _traced(trace, budget, is_full, report)
    except ChangedOutside:
        raise
    except TraceError as error:
        return error


def _of_live(alive: Trace, budget: Budget, report: Report) -> Graph:
    """The graph of a program whose data are live objects; raises TraceError if it is incomplete."""
    alive.sites.is_live, own = True, Report()
    graph = _traced(alive, replace(budget, work=min(budget.work, WORK_LIVE)), True, own)
    verify(graph)  # with the programs that it calls
    for each in fields(own):
        setattr(report, each.name, getattr(own, each.name))
    alive.is_taken = True
    return graph


def _of_live_or_error(alive: Trace, budget: Budget, report: Report) -> Graph | SgcError:
    try:
        return _of_live(alive, budget, report)
    except (TraceError, VerifyError) as error:  # the result without live objects stands
        return error


def _traced(trace: Trace, budget: Budget, is_full: bool, report: Report) -> Graph:
    """The graph of a program; traces anew for each mapped function, module to convert, or set of
    pieces that a trace finds.
    """
    while True:
        trace.steps.refuse_more(trace.function.name, str(trace.function.loc))
        if trace.sites.streams_told is not None:  # loops that make streams do not merge then
            budget = replace(budget, work=min(budget.work, WORK_KEPT))
        try:
            return _traced_once(trace, budget, is_full, report)
        except Unmet as unmet:
            trace.callees.meet(unmet)
        except Unconverted as met:
            trace.in_place.convert(met.names)
        except WrongGuess:
            trace.take_back_guesses()
        except Pieced:
            pass
        except TraceError as error:
            if trace.sites.forks.keep() or trace.may_name(error) or trace.may_leave(error):
                continue
            told = trace.told_of(error)
            told.needs = error.needs or frozenset(trace.sizes)
            raise told from error


def _traced_once(trace: Trace, budget: Budget, is_full: bool, report: Report) -> Graph:
    try:
        if trace.is_leaving:
            raise MustExplore
        graph = trace.straight()
        again = trace.straight(style=Style.LONG)
    except MustExplore:
        graph = _verified(trace, budget, is_full, report)
        is_merging = not report.unmerged
        try:
            again = trace.explored(
                budget, is_full, Report(), is_merging, Style.LONG, is_first=False
            )
        except TraceError as error:
            if trace.sites.is_guessed:
                raise WrongGuess from error
            raise
        if (
            graph != again and trace.sites.is_guessed
        ):  # runs before a piece was found may not fit the later runs
            graph = _verified(trace, budget, is_full, report, is_first=False)
    refuse_changed_rest(trace.sites.outside)
    if graph != again:
        raise _difference(trace.function, graph, again)
    return graph


def _verified(
    trace: Trace, budget: Budget, is_full: bool, report: Report, is_first: bool = True
) -> Graph:
    """The graph of a program with decisions. If merged paths do not fit together, it is traced
    without merging, which costs more but is always right.
    """
    report.unmerged = ""
    graph = trace.explored(budget, is_full, report, is_first=is_first)
    try:
        verify(graph)
    except VerifyError as error:
        if trace.sites.is_guessed:
            raise WrongGuess from error
        report.unmerged = str(error)
        graph = trace.explored(budget, is_full, report, is_merging=False)
    return graph


def _difference(function: Definition, first: Graph, second: Graph) -> TraceError:
    pairs = zip(first.nodes(), second.nodes(), strict=False)
    node = next((a for a, b in pairs if a != b), None)
    return TraceError(
        f"tracing {function.name} twice gave two different programs",
        where=str(node.loc) if node is not None and node.loc else "",
        hint="it depends on time, randomness or state outside (pass such values as arguments), or "
        "a library cuts or compares a text known only at run time (do that in the "
        "program itself, or in a tool); or " + INTERPRET,
    )
