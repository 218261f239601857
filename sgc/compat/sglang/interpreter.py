"""SGLang's `lang.interpreter`, `.tracer` and `.compiler`: what programs import of them.

`ProgramState` is for annotations and `isinstance`: states are made by running programs.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Mapping
from typing import Any

from sgc import runs, state, view
from sgc.compat.sglang.programs import CompiledFunction, SglFunction, TracedGraph
from sgc.compat.sglang.streams import AskedStream
from sgc.group import ProgramStateGroup

__all__ = ["ProgramState", "ProgramStateGroup", "StreamExecutor", "cache_program"]


class ProgramState(metaclass=ABCMeta):  # noqa: B024
    """What a run gives and what a program appends to; sgc has a class for each."""


ProgramState.register(state.ProgramState)
ProgramState.register(runs.RunState)


class StreamExecutor(metaclass=ABCMeta):  # noqa: B024
    """What `state.stream_executor` is."""


StreamExecutor.register(view.StreamExecutorView)
StreamExecutor.register(AskedStream)  # as backends get it


def cache_program(program: SglFunction, backend: Any) -> None:
    """Has the backend keep the text that every run of the program begins with."""
    program.cache(backend)


def trace_program(program: SglFunction, arguments: Mapping[str, Any], backend: Any) -> TracedGraph:
    """The program as a graph, with some arguments fixed."""
    return program.trace(backend=backend, **arguments)


def compile_func(function: SglFunction, backend: Any) -> CompiledFunction:
    """The compiled program."""
    return function.compile(backend=backend)
