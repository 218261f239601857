"""`@sgc.function`: programs as Python functions that can be run, traced and compiled."""

from __future__ import annotations

import asyncio
import difflib
import functools
import inspect
import os
import types as python_types
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from sgc.core.session import current_session, here
from sgc.core.threads import in_thread
from sgc.errors import ArgumentError, SgcWarning, TraceError, UsageError
from sgc.interpreter.calls import Canceller, call, finished, run_eager, start_eager, start_streaming
from sgc.interpreter.deopt import may_deopt, run_with_deopt
from sgc.ir.analysis.interpreted import left_of
from sgc.ir.graph import Graph, Loc
from sgc.lang.signature import read_signature
from sgc.lang.state import ProgramState
from sgc.planning.batches import make_batch
from sgc.programs.jit import Jit
from sgc.runs.batch import (
    MAX_CONCURRENCY,
    Batch,
    BatchOptions,
    Row,
    checked_rows,
)
from sgc.runs.endpoints import Endpoint, resolve_backend
from sgc.runs.options import HOW_DEFAULTS, OPTION_NAMES, Given, known_options, make_options
from sgc.runs.row_iterator import arun_each, run_all, run_each
from sgc.runs.run import RunState
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.keep.single_flight import SingleFlight
from sgc.runtime.executor.run.context import OnText
from sgc.runtime.executor.run.loop import refuse_own_thread, shared
from sgc.runtime.executor.run.options import RunOptions, check_parameter
from sgc.runtime.executor.run.record import RunResult

if TYPE_CHECKING:
    from sgc.programs.program import Program

_NOT_PROGRAMS = {
    "an async function": inspect.iscoroutinefunction,
    "an async generator": inspect.isasyncgenfunction,
    "a generator": inspect.isgeneratorfunction,
}


def _place(python: python_types.FunctionType) -> Loc:
    code = python.__code__
    return Loc(os.path.basename(code.co_filename), code.co_firstlineno, python.__name__)


MAX_COUNT = 1_000_000


def _checked_heal(heal: Any) -> bool | None:
    if heal is not None:
        check_parameter("heal", heal)
    return None if heal is None else bool(heal)


def _checked_count(name: str, value: Any, least: int = 1) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not (is_count and least <= value <= MAX_COUNT):
        raise UsageError(
            f"{name} takes a whole number from {least} to {MAX_COUNT}, found {value!r}",
            where=here(),
        )
    return None if value is None else int(value)


class Function:
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
        # A decorator below this one is part of the program: it is called, not looked through.
        if not isinstance(python, python_types.FunctionType):
            raise UsageError(f"@sgc.function takes a Python function, found {python!r}")
        unwrapped = inspect.unwrap(python)
        assert isinstance(unwrapped, python_types.FunctionType)
        for kind, is_kind in _NOT_PROGRAMS.items():
            if is_kind(unwrapped):
                raise UsageError(
                    f"{unwrapped.__name__} is {kind}, which cannot be a program",
                    where=str(_place(unwrapped)),
                    hint="write a plain `def`; generations run in parallel without await",
                )
        self.python = python
        self.func = python  # SGLang's name for it
        self.name = unwrapped.__name__
        self.signature = read_signature(unwrapped)
        self.loc = _place(unwrapped)
        self.num_api_spec_tokens = _checked_count(
            "num_api_spec_tokens", num_api_spec_tokens, least=0
        )
        self.full_graph = full_graph
        self.heal = _checked_heal(heal)
        self.max_turns = _checked_count("max_turns", max_turns)
        self.allow_ambient = allow_ambient
        self.bind_arguments: dict[str, Any] = dict(bind_arguments or {})
        self._jit = Jit(self) if jit else None
        self._has_specialized = False
        self._refused: dict[str, str] = {}  # options that no compiled run has, and why
        functools.update_wrapper(self, unwrapped)

    @property
    def arg_names(self) -> list[str]:
        """Names of the program's parameters."""
        return list(self.signature.names)

    @property
    def arg_defaults(self) -> list[Any]:
        """Defaults of the last of them."""
        return [p.default for p in self.signature.parameters if p.has_default]

    def bind(self, **kwargs: Any) -> Function:
        """The program with some arguments given; a call may give them anew."""
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

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name: bound ones, unless the call gives them."""
        positional = self.signature.names[: len(args)]
        bound = {n: v for n, v in self.bind_arguments.items() if n not in positional}
        return self.signature.bind(args, {**bound, **kwargs})

    # -- running --------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Inside another program, a stream of the same run; else a run, compiled if it can be.

        A run goes on behind the call, which gives its `RunState` at once; it takes what `run`
        takes. `f.explain()` tells what was compiled and what was not, and why.
        """
        session = current_session()
        if session is not None:
            return call(self, session, self._bound(args, kwargs))
        refuse_own_thread(shared.loop)
        given = self._split(args, kwargs)
        if given.stream:
            return self.run(*args, **kwargs)
        return self._start(given, resolve_backend(given.backend))

    def _start(self, given: Given, endpoint: Endpoint) -> RunState:
        row = self._row(given.arguments, given.options, endpoint, given.on_text)
        if row.start is not None:
            work = asyncio.run_coroutine_threadsafe(row.started(), shared.loop)
            return RunState(work, row.how)
        assert row.call is not None
        return RunState(in_thread(row.call, f"sgc-{self.name}"), row.how, cancel=row.cancel)

    def run(self, *args: Any, **kwargs: Any) -> ProgramState:
        """Interprets the program: its Python runs here, generations run behind it.

        Takes the program's arguments, and a run's options where the program has no
        argument of that name: backend, seed, temperature, max_new_tokens, stop and the like,
        and on_text, called by the loop's thread with what streams get: a node, a stream's path
        and a text. Returns when the body has ended; reading a name or the text waits for it.
        stream=True: the body runs on a thread of its own, and the state, given at once, can be
        followed by `text_iter`. use_thread is SGLang's:
        generations always run behind the body.
        """
        if current_session() is not None:
            return self._run_inside(args, kwargs)
        refuse_own_thread(shared.loop)
        given = self._split(args, kwargs)
        backend = resolve_backend(given.backend).backend
        start = start_streaming if given.stream else start_eager
        return start(self, given.arguments, backend, given.options, shared.loop, given.on_text)

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
        """Interprets to the end and gives what a compiled run gives."""
        given = self._bound((), arguments)
        self.signature.check_types(given)
        backend = endpoint.backend
        return finished(start_eager(self, given, backend, options, shared.loop, on_text))

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
        """How one run is made: compiled where it can be. May trace, so never on the loop.

        guards: what `Jit.guards` gave just now; row: its key in a batch; sharing: the backend of
        the batch's compiled rows.
        """
        backend = endpoint.backend
        shares: Backend = sharing or SingleFlight(backend)
        why = self._refusal(options) if endpoint.compiles else "its backend is the author's own"
        given = options if row is None else replace(options, row=row)
        canceller = Canceller()

        def interpret(chosen: RunOptions) -> RunResult:
            return run_eager(self, arguments, backend, chosen, shared.loop, on_text, canceller)

        if self._jit is not None and not why:
            found, rest = self._jit.specialize(arguments, guards)
            program, why = found.program, found.reason
            if program is not None and not may_deopt(program.graph):

                def start(compiled: Program) -> Coroutine[Any, Any, RunResult]:
                    return compiled.start(shares, rest, options, on_text, row)

                return Row(start, program=program, arguments=rest)
            if program is not None and on_text is None:  # else texts would be shown twice
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
        """Why no run with these options is compiled; empty where one may be."""
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

    def run_batch(
        self,
        batch_kwargs: Any,
        *,
        backend: Any = None,
        num_threads: int | str = "auto",
        progress_bar: bool = False,
        generator_style: bool = False,
        ordered: bool = True,
        max_errors: int | None = None,
        max_concurrency: int = MAX_CONCURRENCY,
        order: str = "plan",
        reorder_fields: bool = False,
        **options: Any,
    ) -> Any:
        """Runs the program once for each row: a dict of arguments, or a tuple of them.

        Gives their `RunState`s in order; a row that failed raises its cause when it is read.
        generator_style: an iterator that gives rows as they can be had, in order, or with
        ordered=False as they end. max_errors: more failed rows end the batch with BatchFailed.
        num_threads: for rows that are interpreted; max_concurrency: rows under way at a time.
        order="plan": compiled rows that begin alike start one after another, unless a tool has
        effects; "given" leaves them. reorder_fields: also moves the fields of prompts that are
        tables, which changes the prompts (docs/batches.md).
        Other options are those of `run`. Row i draws as a run with the row key i.
        """
        refuse_own_thread(shared.loop)
        how = BatchOptions(
            num_threads, max_concurrency, max_errors, progress_bar, order, reorder_fields
        )
        batch = self._batch(batch_kwargs, how, backend, options)
        if generator_style or not ordered:
            return run_each(batch, ordered)
        return run_all(batch)

    async def abatch(
        self,
        batch_kwargs: Any,
        *,
        backend: Any = None,
        num_threads: int | str = "auto",
        progress_bar: bool = False,
        ordered: bool = True,
        max_errors: int | None = None,
        max_concurrency: int = MAX_CONCURRENCY,
        order: str = "plan",
        reorder_fields: bool = False,
        **options: Any,
    ) -> AsyncIterator[RunState]:
        """The same as an asynchronous iterator; leaving it stops the rows under way."""
        how = BatchOptions(
            num_threads, max_concurrency, max_errors, progress_bar, order, reorder_fields
        )
        # Making the rows may start an engine, trace and compile: nothing for a loop.
        batch = await asyncio.to_thread(self._batch, batch_kwargs, how, backend, options)
        async with aclosing(arun_each(batch, ordered)) as states:
            async for state in states:
                yield state

    def _batch(
        self, rows: Any, how: BatchOptions, backend: Any, options: Mapping[str, Any]
    ) -> Batch:
        endpoint = resolve_backend(backend)
        rows = checked_rows(rows)
        chosen = make_options(known_options(options))
        bound = [self._row_arguments(index, row) for index, row in enumerate(rows)]

        endpoint.begin_batch(self, len(bound))
        guards = self._jit.guards() if self._jit is not None else None
        sharing = SingleFlight(endpoint.backend)
        made = [
            self._row(arguments, chosen, endpoint, None, guards, str(index), sharing)
            for index, arguments in enumerate(bound)
        ]
        return make_batch(made, how, endpoint.backend, chosen.max_tokens)

    def _row_arguments(self, index: int, row: Any) -> dict[str, Any]:
        """The arguments of a row, checked before any row starts."""
        try:
            if isinstance(row, Mapping):
                arguments = self._bound((), row)
            elif isinstance(row, (list, tuple)):
                arguments = self._bound(tuple(row), {})
            else:
                raise ArgumentError(
                    f"a row is a dict or a tuple of arguments, found {type(row).__name__}"
                )
            self.signature.check_types(arguments)
        except ArgumentError as error:
            raise ArgumentError(f"row {index}: {error.message}", hint=error.hint) from error
        return arguments

    # -- compiling ------------------------------------------------------------------------

    def _split(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Given:
        """The program's own parameters come first; what is left may be options."""
        own = {name: value for name, value in kwargs.items() if name in self.signature.names}
        rest = {name: value for name, value in kwargs.items() if name not in own}
        how = {name: rest.pop(name) for name in list(rest) if name in HOW_DEFAULTS}
        chosen = {name: rest.pop(name) for name in list(rest) if name in OPTION_NAMES}
        try:
            arguments = self._bound(args, own | rest)
        except ArgumentError as error:
            known = [*self.signature.names, *OPTION_NAMES, *HOW_DEFAULTS]
            for name in rest:
                for close in difflib.get_close_matches(name, known, n=1):
                    error.hint += f"; did you mean {close} instead of {name}?"
            raise
        self.signature.check_types(arguments)
        how.pop("use_thread", None)
        return Given(arguments, make_options(chosen), **how)

    def trace(self, *, backend: Any = None, **bind: Any) -> Graph:
        """The traced program before any pass, with `bind` arguments fixed to values."""
        from sgc.tracing.tracer import trace
        from sgc.tracing.watch.ambient import ambient_allowed

        refuse_own_thread(shared.loop)
        with ambient_allowed(self.allow_ambient):
            return trace(self, {**self.bind_arguments, **bind})

    def compile(
        self, *, backend: Any = None, check: bool = True, opt_level: int = 1, **bind: Any
    ) -> Program:
        """The compiled program, with `bind` arguments fixed to values.

        Raises TraceError at the line that cannot be traced. check: replay the trace
        against the interpreter. backend: SGLang's; a program is compiled for any.
        """
        from sgc.programs.program import compile_function

        refuse_own_thread(shared.loop)
        bound = {**self.bind_arguments, **bind}
        program = compile_function(self, bound, check=check, opt_level=opt_level)
        left = left_of(program.graph)
        if left is not None:
            message = f"{left.lines[0]}: {self.name} has {left}; they need its source to go on"
            warnings.warn(message, SgcWarning, stacklevel=2)
        return program

    def explain(self) -> str:
        """What calls of it led to: for each signature whether it was compiled, or why not."""
        if self._jit is None:
            return f"{self.name} is always interpreted (jit=False)"
        lines = [
            f"{self.name}(…, {given}): interpreted: {why}" for given, why in self._refused.items()
        ]
        if self._has_specialized or not lines:
            lines.insert(0, self._jit.explain())
        return "\n".join(lines)

    def cache(self, backend: Any = None) -> None:
        """Has the backend compute and keep the constant text that every run begins with."""
        from sgc.runtime.executor.constant_prefix import commit_constant_prefix

        endpoint = resolve_backend(backend)
        shared.run(commit_constant_prefix(self.trace(), endpoint.backend))

    def __repr__(self) -> str:
        return f"<sgc.function {self.name}({', '.join(map(self._shown, self.signature.names))})>"

    def _shown(self, name: str) -> str:
        """A parameter as `repr` shows it: with its stars, or with the argument bound to it."""
        stars = {self.signature.rest: "*", self.signature.options: "**"}.get(name, "")
        return f"{stars}{name}" + ("=…" if name in self.bind_arguments else "")


@overload
def function(func: Callable[..., Any]) -> Function: ...
@overload
def function(
    func: None = None,
    num_api_spec_tokens: int | None = None,
    *,
    jit: bool = True,
    full_graph: bool = False,
    heal: bool | None = None,
    max_turns: int | None = None,
    allow_ambient: bool = False,
) -> Callable[[Callable[..., Any]], Function]: ...


def function(
    func: Callable[..., Any] | None = None,
    num_api_spec_tokens: int | None = None,
    *,
    jit: bool = True,
    full_graph: bool = False,
    heal: bool | None = None,
    max_turns: int | None = None,
    allow_ambient: bool = False,
) -> Any:
    """Makes a Python function whose first parameter is a stream into a program.

    jit=False: calls of it are always interpreted; full_graph=True: a call that cannot be
    compiled is an error. heal: the default of its generations (see `gen`); None is that of the
    program that calls it, else the run's. max_turns: how often a compiled run may go round a
    loop whose end depends on what is generated. allow_ambient: compiled, it keeps what it reads
    of clocks, random numbers, the environment and files, instead of being interpreted.
    num_api_spec_tokens: tokens to speculate with on provider APIs.
    """

    def make(python: Callable[..., Any]) -> Function:
        return Function(
            python,
            num_api_spec_tokens,
            jit=jit,
            full_graph=full_graph,
            heal=heal,
            max_turns=max_turns,
            allow_ambient=allow_ambient,
        )

    return make if func is None else make(func)
