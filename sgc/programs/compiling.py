"""Makes a program of a function: traces, checks and optimizes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from sgc.core.stops import INTERPRET
from sgc.errors import TraceError
from sgc.ir.analysis.interpreted import left_of
from sgc.ir.graph import Graph
from sgc.ir.types import Type
from sgc.lang.definition import Definition
from sgc.lang.tools import met_tools
from sgc.passes.base import Pass
from sgc.passes.facts.kept_results import keep
from sgc.passes.pipeline import Observer, optimize
from sgc.programs.program import Program
from sgc.runtime.executor.interface.tools import ToolImpl

if TYPE_CHECKING:
    from sgc.tracing.pieces.in_python import PiecesInPython


def refuse_dead(name: str, graph: Graph) -> None:
    """Raises TraceError if every compiled path ends in the interpreter before any request."""
    left = left_of(graph)
    if left is not None and left.is_all:
        raise TraceError(
            f"no path through {name} that was compiled reaches a request: {left}",
            where=left.lines[0],
            hint="give lists their values when compiling, append what a loop gathers to the stream "
            "(s += x), or join it: sgc.join(sep, xs); or " + INTERPRET,
        )


def fixed_in(program: Program, function: Definition, bound: Collection[str]) -> list[str]:
    """The arguments that tracing fixed to their values, without those that were bound."""
    taken = {param.value.name for param in program.graph.params}
    return [p.name for p in function.signature.parameters
            if p.name not in taken and p.name not in bound and not p.is_static]  # fmt: skip


def fixed_note(program: str, name: str, value: Any) -> str:
    """The warning for an argument that is fixed to its default."""
    return (
        f"{name} of {program} is fixed to its default, {value!r}, for what it decides must be "
        f"known when compiling; --bind {name}=VALUE, or compile({name}=VALUE), takes another"
    )


class How(NamedTuple):
    """How a program is traced. leaves: code that cannot be traced is left to the interpreter;
    in_python: pieces of the program run in Python; no_code_at: these lines do not become code."""

    leaves: bool
    in_python: PiecesInPython | None
    no_code_at: frozenset[str] = frozenset()


class Traced(NamedTuple):
    """A graph, its bound arguments, and the tools and pieces of the source that it runs in
    Python."""

    graph: Graph
    bound: Mapping[str, Any]
    tools: tuple[ToolImpl, ...] = ()


Traces = Callable[[Mapping[str, Any], How], Traced]


def with_values(
    traced: Traces,
    bind: Mapping[str, Any],
    values: Mapping[str, Any],
    leaves: bool = False,
    optional: Collection[str] = (),
    may_be_in_python: bool = False,
) -> Traced:
    """The graph for the arguments `bind`, and those of `values` that tracing needs.

    traced: traces the program with these arguments, and checks the graph. leaves: whether what
    cannot be traced may be left to the interpreter, if nothing else helps; may_be_in_python:
    whether pieces of it may run in Python. optional: arguments that may be None, whose values are
    taken if nothing else helps.
    """
    from sgc.tracing.pieces.in_python import PiecesInPython

    while True:
        noting = PiecesInPython(is_noting=True) if may_be_in_python else None
        try:
            found = traced(bind, How(False, noting))
            return found if _asks(found) or not leaves else _with_less(traced, bind, found, noting)
        except TraceError as error:
            free = values.keys() - bind.keys()
            names = free & error.needs or free & {*optional}
            needed = {name: values[name] for name in names}
            if not needed:
                return _with_python(traced, bind, error, leaves, noting)
            bind = {**bind, **needed}


def _with_python(
    traced: Traces,
    bind: Mapping[str, Any],
    error: TraceError,
    leaves: bool,
    noting: PiecesInPython | None,
) -> Traced:
    """The graph with pieces that run in Python, if those are allowed, else with code that cannot be
    traced left to the interpreter; raises the error if no path of it asks a model."""
    from sgc.tracing.pieces.in_python import PiecesInPython

    # A value that tracing needs is not known in Python before the run either.
    is_noted = noting is not None and noting.noted and not error.needs
    if is_noted:
        with suppress(TraceError):  # the first error, without such pieces, is raised
            found = traced(bind, How(False, PiecesInPython(is_sure=not leaves)))
            if _asks(found) or not leaves:
                return found
    if not leaves:
        raise error
    # Without such pieces: where the interpreter goes on, it would run them once more.
    found = _leaving(traced, bind)
    if not _asks(found):
        raise error
    return found


MAX_LINES = 4  # each takes a trace


def _leaving(traced: Traces, bind: Mapping[str, Any]) -> Traced:
    """The graph with code that cannot be traced left to the interpreter, and so are lines whose
    code would only end a run, for example by changing shared objects."""
    lines: frozenset[str] = frozenset()
    while True:
        try:
            return traced(bind, How(True, None, lines))
        except TraceError as error:
            if not error.fails_at or error.fails_at in lines or len(lines) == MAX_LINES:
                raise
            lines |= {error.fails_at}


def _with_less(
    traced: Traces, bind: Mapping[str, Any], found: Traced, noting: PiecesInPython | None
) -> Traced:
    """The graph, or one that leaves more to the interpreter, if only that one asks a model: the
    budget may have been spent on paths around a line that cannot be traced."""
    with suppress(TraceError):
        return _with_python(traced, bind, TraceError("no path asks"), leaves=True, noting=noting)
    return found


def _asks(found: Traced) -> bool:
    """Whether some of the compiled paths may ask a model, or none is left to the interpreter."""
    left = left_of(found.graph)
    return left is None or not left.is_all


def compile_function(
    function: Definition,
    bind: Mapping[str, Any],
    *,
    check: bool = True,
    opt_level: int = 1,
    passes: tuple[str, ...] | None = None,
    observer: Observer | None = None,
    types_of: Mapping[str, Type] | None = None,
    schemas: Mapping[str, str] | None = None,
    is_strict: bool = False,
    is_full: bool = False,
    leaves: bool = False,
    allow_ambient: bool = False,
    kept: str = "all",
    allow_no_request: bool = False,
    target: tuple[Pass, ...] = (),
    values: Mapping[str, Any] | None = None,
    may_be_in_python: bool = False,
) -> Program:
    """Traces, checks the trace against the interpreter, and runs the passes.

    values: of arguments that are fixed to them if tracing needs them, such as a number of forks.
    may_be_in_python: pieces of the program that cannot be traced run in Python, if it is certain
    that their results are data; with `leaves`, also if not.
    types_of, schemas: types of arguments known from their values (see `trace`).
    target: passes for one model (`sgc.runs.cache_rules.passes_for`), after the others.
    kept: which streams are results, one of `sgc.passes.facts.kept_results.KEEPS`.
    is_full: a path that would be left to the interpreter is an error.
    leaves: what follows a line that cannot be traced is left to the interpreter; else it is an
    error.
    allow_ambient: reads of the surroundings are allowed, and their values compiled in.
    allow_no_request: every compiled path may end in the interpreter before any request.
    """
    from sgc.tracing.checking.check import check_trace
    from sgc.tracing.checking.scripted_tools import failing
    from sgc.tracing.tracer import trace
    from sgc.tracing.watch.ambient import ambient_allowed

    with ambient_allowed(allow_ambient or function.allow_ambient):
        is_full = is_full or function.full_graph

        def traced(bound: Mapping[str, Any], how: How) -> Traced:
            def checked(graph: Graph) -> None:
                with failing(graph):
                    check_trace(function, graph, bound, how.in_python, is_strict)

            with met_tools() as met:
                graph = trace(
                    function, bound, types_of, is_strict, is_full=is_full, schemas=schemas,
                    leaves=how.leaves, in_python=how.in_python, no_code_at=how.no_code_at,
                    checked=checked if check else None,
                )  # fmt: skip
            pieces = () if how.in_python is None else how.in_python.impls
            return Traced(graph, bound, (*(tool.impl for tool in met.values()), *pieces))

        found = with_values(
            traced, bind, values or {}, leaves and not is_full, function.signature.optional,
            (leaves or may_be_in_python) and not is_full,
        )  # fmt: skip
        if not allow_no_request:
            refuse_dead(function.name, found.graph)
    graph = optimize(keep(found.graph, kept), opt_level, passes, observer, target)
    return Program(graph, found.tools, opt_level)
