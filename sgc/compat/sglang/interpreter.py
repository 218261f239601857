"""The names of SGLang's `lang.interpreter`, `.tracer` and `.compiler` that programs import.

`ProgramState` is for annotations and `isinstance`: states are made by running programs.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from sgc.compat.sglang.backends.sampling_params import SglSamplingParams
from sgc.compat.sglang.backends.streams import AskedStream
from sgc.compat.sglang.programs import CompiledFunction, SglFunction, TracedGraph
from sgc.lang import state, view
from sgc.lang.group import ProgramStateGroup
from sgc.runs import run as runs
from sgc.runs.endpoints import resolve_backend
from sgc.runtime.executor.constant_prefix import constant_prefix
from sgc.runtime.executor.run.loop import shared

__all__ = [
    "ProgramState",
    "ProgramStateGroup",
    "StreamExecutor",
    "cache_program",
    "run_program",
    "run_program_batch",
]


class ProgramState(metaclass=ABCMeta):  # noqa: B024
    """The value that a run returns, and the one that a program appends to: two classes in sgc."""


ProgramState.register(state.ProgramState)
ProgramState.register(runs.RunState)


class StreamExecutor(metaclass=ABCMeta):  # noqa: B024
    """The class of `state.stream_executor`."""


StreamExecutor.register(view.StreamExecutorView)
StreamExecutor.register(AskedStream)  # as backends get it


def cache_program(program: SglFunction, backend: Any) -> None:
    """Makes the backend compute and cache the text that every run of the program begins with."""
    program.cache(backend)


def run_program(
    program: SglFunction,
    backend: Any,
    func_args: Sequence[Any],
    func_kwargs: Mapping[str, Any],
    default_sampling_para: SglSamplingParams,
    stream: bool,
    sync: bool = False,
    use_thread: bool = True,
) -> Any:
    """Runs a program with sampling parameters from an object."""
    options = run_options(default_sampling_para)
    run = program.run(*func_args, backend=backend, stream=stream, **options, **func_kwargs)
    if sync:
        run.sync()
    return run


def run_program_batch(
    program: SglFunction,
    backend: Any,
    batch_arguments: Any,
    default_sampling_para: SglSamplingParams,
    num_threads: int | str,
    progress_bar: bool,
    generator_style: bool = False,
) -> Any:
    """Runs a batch with sampling parameters from an object."""
    return program.run_batch(
        batch_arguments,
        backend=backend,
        num_threads=num_threads,
        progress_bar=progress_bar,
        generator_style=generator_style,
        **run_options(default_sampling_para),
    )


def run_options(params: SglSamplingParams) -> dict[str, Any]:
    """The parameters as options of `run`, without those at their defaults."""
    given = {row.name: (getattr(params, row.name), row.default) for row in fields(params)}
    return {name: value for name, (value, default) in given.items() if value != default}


def extract_prefix_by_tracing(program: SglFunction, backend: Any) -> str:
    """The text that every run of the program begins with, in the backend's chat template."""
    graph, asked = program.trace(backend=backend), resolve_backend(backend).backend
    prompt = shared.run(constant_prefix(graph, asked))
    return "".join(run.text for run in prompt)


def trace_program(program: SglFunction, arguments: Mapping[str, Any], backend: Any) -> TracedGraph:
    """The program as a graph, with some arguments fixed."""
    return program.trace(backend=backend, **arguments)


def compile_func(function: SglFunction, backend: Any) -> CompiledFunction:
    """The compiled program."""
    return function.compile(backend=backend)
