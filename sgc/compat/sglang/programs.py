"""SGLang's `@function` on top of sgc's, with SGLang's other methods of functions.

Running, binding and calling are sgc's own. Tracing returns a graph that is printed as SGLang's
tracer prints its own; compiling returns an object with `run` and `run_batch`; `pin` is `cache`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from sgc.errors import UsageError
from sgc.ir.graph import Graph
from sgc.ir.text.printer import to_text
from sgc.programs.function import Function
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import resolve_backend
from sgc.runs.run import RunState


class TracedGraph(Graph):
    """A graph with the attributes that SGLang's programs use to print a trace."""

    @property
    def last_node(self) -> TracedGraph:
        return self

    def print_graph_dfs(self) -> str:
        """The graph as text; SGLang's name for it."""
        return to_text(self)


class CompiledFunction:
    """A compiled program with SGLang's way to run it. backend: the default."""

    def __init__(self, program: Program, backend: Endpoint | None) -> None:
        self.program = program
        self._backend = backend

    def run(self, *, backend: Endpoint | None = None, **kwargs: Any) -> RunState:
        """Runs once and waits."""
        return RunState(self.program.run(backend=backend or self._backend, **kwargs))

    def run_batch(
        self,
        batch_kwargs: Any,
        *,
        backend: Endpoint | None = None,
        num_threads: int | str = "auto",
        progress_bar: bool = False,
        **options: Any,
    ) -> list[RunState]:
        """Runs once for each dict of arguments, in order."""
        found: list[RunState] = self.program.run_batch(
            batch_kwargs,
            backend=resolve_backend(backend or self._backend),
            progress_bar=progress_bar,
            **options,
        )
        return found

    def print_graph(self) -> None:
        """Prints the program in its text form."""
        print(self.program.text())


class SglFunction(Function):
    """A program, as `@sgl.function` makes it."""

    def bind(self, **kwargs: Any) -> SglFunction:
        """The program with some arguments bound; a call may override them."""
        bound = super().bind(**kwargs)
        return SglFunction(
            self.python,
            self.num_api_spec_tokens,
            jit=self._jit is not None,
            full_graph=self.full_graph,
            heal=self.heal,
            bind_arguments=bound.bind_arguments,
        )

    def trace(self, *, backend: Any = None, **bind: Any) -> TracedGraph:
        """The program as a graph, with the arguments in `bind` fixed."""
        graph = super().trace(backend=backend, **bind)
        return TracedGraph(**{field.name: getattr(graph, field.name) for field in fields(graph)})

    # It has the keywords of sgc's own `compile`, but returns SGLang's class.
    def compile(  # type: ignore[override]
        self, *, backend: Endpoint | None = None, **how: Any
    ) -> CompiledFunction:
        """The compiled program; raises TraceError at the line that cannot be traced."""
        return CompiledFunction(super().compile(backend=backend, **how), backend)

    def pin(self, backend: Any = None) -> None:
        """Makes the backend compute and cache the text that every run begins with."""
        self.cache(backend)

    def unpin(self, backend: Any = None) -> None:
        """Does nothing: unused cached text is evicted when memory is needed."""


def function(
    func: Callable[..., Any] | None = None,
    num_api_spec_tokens: int | None = None,
    *,
    api_num_spec_tokens: int | None = None,
    jit: bool = True,
    full_graph: bool = False,
    heal: bool | None = None,
) -> Any:
    """`@sgl.function`; `api_num_spec_tokens` is an older name of `num_api_spec_tokens`."""
    if num_api_spec_tokens is not None and api_num_spec_tokens is not None:
        raise UsageError("num_api_spec_tokens and api_num_spec_tokens are the same; give one")
    n_tokens = api_num_spec_tokens if num_api_spec_tokens is None else num_api_spec_tokens

    def make(python: Callable[..., Any]) -> SglFunction:
        return SglFunction(python, n_tokens, jit=jit, full_graph=full_graph, heal=heal)

    return make if func is None else make(func)
