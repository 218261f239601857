"""`@sgc.function`: programs as Python functions that can be run, traced and compiled."""

from __future__ import annotations

import asyncio
import contextvars
import difflib
import functools
import warnings
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sgc.core.places import here, placed
from sgc.core.session import current_session
from sgc.core.threads import in_thread
from sgc.errors import ArgumentError, SgcWarning, TraceError, UsageError, closest
from sgc.interpreter.bodies import call
from sgc.interpreter.calls import Canceller, finished, run_eager, start_eager, start_streaming
from sgc.ir.analysis.host_calls import told_pieces
from sgc.ir.analysis.interpreted import left_of
from sgc.ir.graph import Graph
from sgc.lang.definition import Definition
from sgc.lang.state import ProgramState
from sgc.programs.batched import Batched
from sgc.programs.jit import Jit
from sgc.runs.batch import Batch, BatchOptions, Row, checked_rows
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import resolve_backend
from sgc.runs.options import HOW_DEFAULTS, OPTION_NAMES, Given, known_options, make_options
from sgc.runs.run import RunState
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.keep.single_flight import SingleFlight
from sgc.runtime.executor.run.context import OnText
from sgc.runtime.executor.run.loop import refuse_own_thread, shared
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult

if TYPE_CHECKING:
    from sgc.programs.program import Program


class Function(Definition, Batched):
    """A program. Calling it inside another program opens a new stream of the same run."""

    def __init__(
        self,
        python: Callable[..., Any],
        num_api_spec_tokens: int | None = None,
        *,
        jit: bool = True,
        full_graph: bool = False,
        heal: bool | None = None,
        max_turns: int | None = None,
        allow_ambient: bool = False,
        bind_arguments: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            python,
            num_api_spec_tokens,
            full_graph=full_graph,
            heal=heal,
            max_turns=max_turns,
            allow_ambient=allow_ambient,
            bind_arguments=bind_arguments,
        )
        self._jit = Jit(self) if jit else None
        self._has_specialized = False
        self._refused: dict[str, str] = {}  # options that prevent compiling, and why

    def bind(self, **kwargs: Any) -> Function:
        """The program with some arguments bound; a call may override them."""
        unknown = [name for name in kwargs if name not in self.signature.names]
        if unknown and self.signature.options is None:
            raise ArgumentError(
                f"{self.name} has no argument {unknown[0]!r} to bind",
                hint=f"it takes: {', '.join(self.signature.names) or 'no arguments'}",
            )
        return Function(
            self.python,
            self.num_api_spec_tokens,
            jit=self._jit is not None,
            full_graph=self.full_graph,
            heal=self.heal,
            max_turns=self.max_turns,
            allow_ambient=self.allow_ambient,
            bind_arguments={**self.bind_arguments, **kwargs},
        )

    # -- running --------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Inside another program, a stream of the same run; else a run, compiled if it can be.

        A run continues in the background: the call returns its `RunState` at once. The call takes
        what `run` takes. `f.explain()` says which calls were compiled, which were not, and why.
        """
        session = current_session()
        if session is not None:
            with placed():
                arguments = self.bound(args, kwargs)
            return call(self, session, arguments)
        refuse_own_thread(shared.loop)
        given = self._split(args, kwargs)
        if given.stream:
            return self.run(*args, **kwargs)
        return self._start(given, resolve_backend(given.backend))

    def _start(self, given: Given, endpoint: Endpoint) -> RunState:
        endpoint = endpoint.with_adapter(given.options.adapter)
        row = self._row(given.arguments, given.options, endpoint, given.on_text)
        if row.start is not None:
            work = asyncio.run_coroutine_threadsafe(row.started(), shared.loop)
            return RunState(work, row.how)
        assert row.call is not None
        return RunState(in_thread(row.call, f"sgc-{self.name}"), row.how, cancel=row.cancel)

    def run(self, *args: Any, **kwargs: Any) -> ProgramState:
        """Interprets the program: its Python runs here, generations in the background.

        Takes the program's arguments, and a run's options unless the program has an argument of
        that name. Returns when the body has ended; reading a name or the text waits for it.

        The options are backend, seed, temperature, max_new_tokens, stop and the like, and these:

        - `stream=True`: the body runs on a thread of its own, and the state is returned at once and
          can be followed by `text_iter`.
        - `on_text`: the loop's thread calls it with each text appended: a node, a stream's path and
          the text.
        - `use_thread` is SGLang's and changes nothing: generations always run in the background.
        """
        if current_session() is not None:
            return self._run_inside(args, kwargs)
        refuse_own_thread(shared.loop)
        given = self._split(args, kwargs)
        backend = resolve_backend(given.backend).with_adapter(given.options.adapter).backend
        start = start_streaming if given.stream else start_eager
        return start(self, given.arguments, backend, given.options, shared, given.on_text)

    def _run_inside(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ProgramState:
        options = (OPTION_NAMES | HOW_DEFAULTS.keys()) - set(self.signature.names)
        refused = [name for name in kwargs if name in options]
        if refused:
            raise UsageError(
                f"{self.name}.run inside a program cannot set {', '.join(refused)}: "
                "the whole program is one run",
                where=here(),
                hint="give gen its own parameters, and options to the outermost run",
            )
        state: ProgramState = self(*args, **kwargs)
        return state

    def run_once(
        self,
        arguments: Mapping[str, Any],
        options: RunOptions,
        endpoint: Endpoint,
        on_text: OnText | None = None,
    ) -> RunResult:
        """Interprets to the end and returns the result as a compiled run does."""
        given = self.bound((), arguments)
        self.signature.check_types(given)
        backend = endpoint.with_adapter(options.adapter).backend
        return finished(start_eager(self, given, backend, options, shared, on_text))

    async def arun(self, *args: Any, **kwargs: Any) -> RunState:
        """Runs the program to its end, compiled if it can be; cancelling stops the run."""
        given = self._split(args, kwargs)
        if given.stream:
            raise UsageError(
                f"{self.name}.arun gives a run that is over; it has nothing to stream",
                where=here(),
                hint=f"use {self.name}.run(stream=True), and its text_async_iter to follow it",
            )
        # Starting an engine, tracing and compiling block.
        endpoint = await asyncio.to_thread(resolve_backend, given.backend)
        state = await asyncio.to_thread(self._start, given, endpoint)
        await state
        return state

    def _row(
        self,
        arguments: dict[str, Any],
        options: RunOptions,
        endpoint: Endpoint,
        on_text: OnText | None = None,
        guards: Any = None,
        row: str | None = None,
        sharing: Backend | None = None,
    ) -> Row:
        """Prepares one run, compiled if it can be. May trace, so never call it on the loop.

        guards: what `Jit.guards` just returned; row: its key in a batch; sharing: the backend of
        the batch's compiled rows.
        """
        backend = endpoint.backend
        shares: Backend = sharing or SingleFlight(backend)
        why = self._refusal(options) if endpoint.compiles else "its backend is the author's own"
        program, rest = None, arguments
        if self._jit is not None and not why:
            found, rest = self._jit.specialize(arguments, guards)
            program, why = found.program, found.reason
        given = options if row is None else replace(options, row=row)
        canceller = Canceller()

        def interpret(chosen: RunOptions) -> RunResult:
            return run_eager(self, arguments, backend, chosen, shared, on_text, canceller)

        if program is not None and not left_of(program.graph):
            from sgc.programs.deopt import within_limits  # loads the compiler

            context = contextvars.copy_context()
            again = None if on_text is not None else functools.partial(interpret, given)

            def start(compiled: Program) -> Coroutine[Any, Any, RunResult]:
                run = compiled.start(shares, rest, options, on_text, row, context)
                return run if again is None else within_limits(compiled, run, again)

            return Row(start, program=program, arguments=rest)

        if program is not None and on_text is None:  # else on_text would get texts twice
            from sgc.programs.deopt import run_with_deopt  # loads the compiler

            return Row(
                call=lambda: run_with_deopt(program, shares, rest, given, interpret),
                cancel=canceller.cancel,
            )
        if self.full_graph:
            raise TraceError(f"{self.name} cannot be compiled, and full_graph is set: {why}")
        return Row(
            call=lambda: interpret(given), cancel=canceller.cancel, how=f"interpreted: {why}"
        )

    def _refusal(self, options: RunOptions) -> str:
        """Why a run with these options is not compiled; empty if it may be."""
        if self._jit is None:
            return "it is not to be compiled (jit=False)"
        if options.n == 1:
            self._has_specialized = True
            return ""
        self._refused[f"n={options.n}"] = why = (
            f"the run asks for n={options.n} texts of each generation; to have it compiled, "
            f"write gen(n={options.n})"
        )
        return why

    # -- batches --------------------------------------------------------------------------

    @property
    def default_order(self) -> str:
        return "plan"

    def _batch(
        self, rows: Any, how: BatchOptions, endpoint: Endpoint, options: Mapping[str, Any]
    ) -> Batch:
        rows = checked_rows(rows)
        chosen = make_options(known_options(options))
        bound = [self.row_arguments(index, row) for index, row in enumerate(rows)]
        endpoint = endpoint.with_adapter(chosen.adapter)
        endpoint.begin_batch(self, len(bound))
        guards = self._jit.guards() if self._jit is not None else None
        sharing = SingleFlight(endpoint.backend)
        made = [
            self._row(arguments, chosen, endpoint, None, guards, str(index), sharing)
            for index, arguments in enumerate(bound)
        ]
        from sgc.runs.planned_batch import make_batch  # loads what plans batches, and passes

        return make_batch(made, how, endpoint.backend, chosen.max_tokens)

    # -- compiling ------------------------------------------------------------------------

    def _split(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Given:
        """Splits a call's keywords: names of parameters are arguments, others may be options."""
        own = {name: value for name, value in kwargs.items() if name in self.signature.names}
        rest = {name: value for name, value in kwargs.items() if name not in own}
        how = {name: rest.pop(name) for name in list(rest) if name in HOW_DEFAULTS}
        chosen = {name: rest.pop(name) for name in list(rest) if name in OPTION_NAMES}
        try:
            arguments = self.bound(args, own | rest)
        except ArgumentError as error:
            known = [*OPTION_NAMES, *HOW_DEFAULTS]
            for name in rest:
                if closest(name, self.signature.names):  # said already
                    continue
                for close in difflib.get_close_matches(name, known, n=1):
                    error.hint += f"; did you mean {close} instead of {name}?"
            raise
        self.signature.check_types(arguments)
        how.pop("use_thread", None)
        return Given(arguments, make_options(chosen), **how)

    def trace(self, *, backend: Any = None, **bind: Any) -> Graph:
        """The traced program before any pass, with the arguments in `bind` fixed."""
        from sgc.tracing.tracer import trace
        from sgc.tracing.watch.ambient import ambient_allowed

        refuse_own_thread(shared.loop)
        with ambient_allowed(self.allow_ambient):
            return trace(self, {**self.bind_arguments, **bind})

    def compile(
        self,
        *,
        backend: Any = None,
        check: bool = True,
        opt_level: int = 1,
        partial: bool = False,
        **bind: Any,
    ) -> Program:
        """The compiled program, with the arguments in `bind` fixed.

        Raises TraceError at the line that cannot be traced.

        Args:
            partial: what follows such a line is left to the interpreter instead, with a warning.
            check: compare the trace with the interpreter.
            backend: SGLang's, ignored; a program is compiled for any backend.
        """
        from sgc.programs.compiling import compile_function, fixed_in, fixed_note

        refuse_own_thread(shared.loop)
        bound = {**self.bind_arguments, **bind}
        defaults = self.signature.defaults
        program = compile_function(
            self, bound, check=check, opt_level=opt_level, values=defaults, leaves=partial
        )
        for name in fixed_in(program, self, bound):
            warnings.warn(fixed_note(self.name, name, defaults[name]), SgcWarning, stacklevel=2)
        left = left_of(program.graph)
        if left is not None:
            message = f"{left.lines[0]}: {self.name} has {left}; they need its source to go on"
            warnings.warn(message, SgcWarning, stacklevel=2)
        pieces = told_pieces(program.graph)
        if pieces:
            message = f"{self.name} runs {pieces}; a file of it needs its source there"
            warnings.warn(message, SgcWarning, stacklevel=2)
        return program

    def explain(self) -> str:
        """Says for each signature that was called whether it was compiled, or why not."""
        if self._jit is None:
            return f"{self.name} is always interpreted (jit=False)"
        lines = [
            f"{self.name}(…, {given}): interpreted: {why}" for given, why in self._refused.items()
        ]
        if self._has_specialized or not lines:
            lines.insert(0, self._jit.explain())
        return "\n".join(lines)

    def cache(self, backend: Any = None) -> None:
        """Makes the backend compute and cache the constant text that every run begins with."""
        from sgc.runtime.executor.constant_prefix import commit_constant_prefix

        endpoint = resolve_backend(backend)
        shared.run(commit_constant_prefix(self.trace(), endpoint.backend))
