"""Compiled programs: graphs that can be saved, loaded, inspected and run without source."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterable, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from sgc.core.session import current_session
from sgc.errors import ArgumentError, UsageError, counted
from sgc.ir.file import sgir as ir_file
from sgc.ir.graph import Graph
from sgc.ir.text.printer import to_text
from sgc.lang.definition import bound_row
from sgc.lang.tools import resolve_tools
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
    pass


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
        """The backend for one run or the rows of one batch: sends equal deterministic requests only
        once, except at -O0.
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
            raise ArgumentError(
                f"{self.name} takes {counted(len(names), 'argument')}, found {len(args)}"
            )
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
