"""Compiled programs: graphs that can be saved, loaded, inspected and run without source."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from sgc.core.session import current_session
from sgc.core.stops import INTERPRET
from sgc.errors import ArgumentError, TraceError, UsageError
from sgc.ir.analysis.interpreted import left_of
from sgc.ir.file import sgir as ir_file
from sgc.ir.graph import Graph
from sgc.ir.text.printer import to_text
from sgc.ir.types import Type
from sgc.lang.definition import Definition, bound_row
from sgc.lang.tools import met_tools, resolve_tools
from sgc.passes.base import Pass
from sgc.passes.facts.kept_results import keep
from sgc.passes.pipeline import Observer, optimize
from sgc.programs.batched import Batched
from sgc.runs.batch import Batch, BatchOptions, Row, checked_rows
from sgc.runs.cache_rules import with_marks
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import resolve_backend
from sgc.runs.options import OPTION_NAMES, known_options, make_options
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.interface.arguments import bind_arguments
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.interface.place import of_run
from sgc.runtime.executor.interface.tools import ToolImpl
from sgc.runtime.executor.keep.single_flight import SingleFlight
from sgc.runtime.executor.run.context import OnText
from sgc.runtime.executor.run.loop import refuse_own_thread, shared
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult
from sgc.runtime.executor.tools.tool_calls import Tools
from sgc.tracing.watch.ambient import warn_changed

if TYPE_CHECKING:
    from sgc.tracing.pieces.in_python import PiecesInPython


@dataclass(frozen=True, slots=True)
class Program(Batched):
    """A verified graph. tools: the tools that its source calls; level: the optimization level that
    it was compiled at, if it was not loaded."""

    graph: Graph
    tools: tuple[ToolImpl, ...] = field(default=(), repr=False, compare=False)
    level: int = field(default=1, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.graph.name

    def with_graph(self, graph: Graph) -> Program:
        """The program with another graph, such as one that a pass returned."""
        return replace(self, graph=graph)

    def run(
        self,
        *args: Any,
        backend: Endpoint | None = None,
        on_text: OnText | None = None,
        **kwargs: Any,
    ) -> RunResult:
        """Runs the program once and waits; takes what `Function.run` takes."""
        refuse_own_thread(shared.loop)
        arguments, options = self._split(args, kwargs)
        return self.run_once(arguments, options, resolve_backend(backend), on_text)

    def run_once(
        self,
        arguments: Mapping[str, Any],
        options: RunOptions,
        endpoint: Endpoint,
        on_text: OnText | None = None,
    ) -> RunResult:
        """Runs the program once, with arguments and options given apart."""
        _refuse_many(options)
        sharing = self.sharing(endpoint.with_adapter(options.adapter).backend)
        return shared.run(self.start(sharing, arguments, options, on_text))

    async def arun(
        self,
        *args: Any,
        backend: Endpoint | None = None,
        on_text: OnText | None = None,
        **kwargs: Any,
    ) -> RunResult:
        """The same for asynchronous callers; cancelling it cancels its requests."""
        arguments, options = self._split(args, kwargs)
        _refuse_many(options)
        # Starting an embedded engine blocks, and the endpoint lives on the shared loop.
        endpoint = await asyncio.to_thread(resolve_backend, backend)
        sharing = self.sharing(endpoint.with_adapter(options.adapter).backend)
        work = self.start(sharing, arguments, options, on_text)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, shared.loop))

    def _batch(
        self, rows: Any, how: BatchOptions, endpoint: Endpoint, options: Mapping[str, Any]
    ) -> Batch:
        chosen = make_options(known_options(options))
        _refuse_many(chosen)
        each = enumerate(checked_rows(rows))
        bound = [bound_row(index, row, self._checked) for index, row in each]
        backend = endpoint.with_adapter(chosen.adapter).backend
        sharing = self.sharing(backend)
        made = [self.row(row, sharing, chosen, str(key)) for key, row in enumerate(bound)]
        from sgc.runs.planned_batch import make_batch  # loads what plans batches

        return make_batch(made, how, backend, chosen.max_tokens)

    def sharing(self, backend: Backend) -> Backend:
        """The backend for one run or the rows of one batch: makes equal requests that draw nothing
        only once, except at -O0.
        """
        return SingleFlight(backend) if self.level and of_run(backend) is None else backend

    @property
    def default_order(self) -> str:
        """The order of a batch's rows; -O0 keeps the given one."""
        return "plan" if self.level else "given"

    def row(
        self, arguments: Mapping[str, Any], backend: Backend, options: RunOptions, key: str
    ) -> Row:
        """One run of a batch, to be made on the shared loop."""

        context = copy_context()

        def start(program: Program) -> Coroutine[Any, Any, RunResult]:
            return program.start(backend, arguments, options, row=key, python=context)

        return Row(start, program=self, arguments=arguments)

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name."""
        names = [param.value.name for param in self.graph.params]
        if len(args) > len(names):
            raise ArgumentError(f"{self.name} takes {len(names)} arguments, found {len(args)}")
        arguments = dict(zip(names, args, strict=False))
        for name in kwargs:
            if name in arguments:
                raise ArgumentError(f"argument {name!r} of {self.name} is given twice")
        return {**arguments, **kwargs}

    def _checked(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        arguments = self._bound(args, kwargs)
        bind_arguments(self.graph, arguments)
        return arguments

    def check_tools(self, options: RunOptions) -> None:
        """Raises ToolError for a tool that a run with these options may not call."""
        tools = Tools(options.allow_tools)
        tools.allow(self.tools)
        tools.check(self.graph.all_nodes())

    def start(
        self,
        backend: Backend,
        arguments: Mapping[str, Any],
        options: RunOptions,
        on_text: OnText | None = None,
        row: str | None = None,
        python: Context | None = None,
    ) -> Coroutine[Any, Any, RunResult]:
        """One run, for the shared loop; on a provider with a prompt cache, with cache marks.
        python: the context that pieces of the source run in; without it, a copy of the current one.
        """
        python = python or copy_context()

        async def run() -> RunResult:
            graph = await with_marks(self.graph, self.level, backend, arguments)
            return await run_graph(
                graph, backend, arguments, options, on_text, row, self.tools, python
            )

        return run()

    def _split(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], RunOptions]:
        session = current_session()
        if session is not None:
            session.refuse_other_runs()
        names = [param.value.name for param in self.graph.params]
        chosen = {name: kwargs[name] for name in kwargs if name in OPTION_NAMES - set(names)}
        own = {name: value for name, value in kwargs.items() if name not in chosen}
        return self._bound(args, own), make_options(chosen)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the `.sgir` file; the same program gives the same bytes."""
        ir_file.save(self.graph, path)

    def text(self) -> str:
        """The program in its text form."""
        return to_text(self.graph)

    def __repr__(self) -> str:
        return f"<sgc.Program {self.name}, {self.graph.n_nodes} nodes>"


def _refuse_many(options: RunOptions) -> None:
    """Refuses n > 1: each generation would be a list, and compiling has typed it as one text."""
    if options.n > 1:
        raise UsageError(
            f"n={options.n} cannot be given to a compiled program: its generations draw one text",
            hint=f"write gen(n={options.n}) in the program, or interpret it: f.run(n={options.n})",
        )


def load(path: str | PathLike[str], *, allow_tools: Iterable[Any] = ()) -> Program:
    """Reads a `.sgir` file, which is data: nothing in it is executed.

    allow_tools: tools, functions and `module:name` (which is imported) that its runs may call.
    Raises LoadError if it is missing, altered, truncated or of an unknown version. Warns if the
    environment or a file has changed since the program was compiled (`allow_ambient`).
    """
    tools = resolve_tools(allow_tools).by_name.values()
    graph = ir_file.load(path)
    warn_changed(graph.guards, os.fspath(path))
    return Program(graph, tuple(tools))


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
    """How a program is traced. leaves: what cannot be traced is left to the interpreter; in_python:
    pieces of it run in Python; no_code_at: nothing of these lines becomes code."""

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
    """The graph with pieces that run in Python, if there may be some, and else with what cannot be
    traced left to the interpreter; raises the error if nothing of it asks a model."""
    from sgc.tracing.pieces.in_python import PiecesInPython

    # A value that tracing needs is not known in Python either before the run.
    is_noted = noting is not None and noting.noted and not error.needs
    if is_noted:
        with suppress(TraceError):  # the first error, which needs no such pieces, is told
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
    """The graph with what cannot be traced left to the interpreter, and lines whose code would only
    end a run: it changes what others hold, say."""
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
    """The graph, in whose place one that leaves more to the interpreter may ask a model: the budget
    was spent on paths around a line that cannot be traced."""
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
    that what they give is data; with `leaves`, also if not.
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
            with met_tools() as met:
                graph = trace(
                    function, bound, types_of, is_strict, is_full=is_full, schemas=schemas,
                    leaves=how.leaves, in_python=how.in_python, no_code_at=how.no_code_at,
                )  # fmt: skip
            if check:
                with failing(graph):
                    check_trace(function, graph, bound, how.in_python)
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
