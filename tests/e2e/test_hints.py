"""Hints move requests in time and nothing else: texts, variables and requests of programs that run
at once are the same with and without them.

The long version:

    PROGRAMS=5000 CONTROL_FLOW=500 .venv/bin/pytest -s -m slow tests/e2e/test_hints.py
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import random_control_runs as control_flow
import random_programs
from random_control import Generator
from tests_support import asked

from sgc.errors import SgcError
from sgc.lang.tools import resolve_tools, tools_in
from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.runs.endpoints import Runtime
from sgc.runtime.executor.backends.engine import run_hints
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace

AT_ONCE = 8
N_PROGRAMS, N_CONTROL_FLOW = 16, 2
SMALL = {"pool_tokens": 2048, "max_running": 6, "check": True}
"""A pool in which requests wait, prefixes are evicted and running requests preempted."""


@dataclass(frozen=True, slots=True)
class Todo:
    name: str
    program: Program
    arguments: dict[str, Any]
    options: RunOptions


@pytest.fixture(scope="module")
def by_program() -> Iterator[Runtime]:
    with Runtime("fake", policy="program", **SMALL) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def unhinted() -> Iterator[Runtime]:
    with Runtime("fake", policy="fcfs", **SMALL) as runtime:
        yield runtime


def straight(n: int) -> Iterator[Todo]:
    arguments = {"x": "Tea " * 40, "y": " is\n", "n": 5}
    for seed in range(n):
        try:
            graph = trace(random_programs.random_program(seed))
        except SgcError:  # it joins what is no text
            continue
        program = Program(optimize(graph, 1))
        yield Todo(f"straight {seed}", program, arguments, RunOptions(seed=seed))


def branching(n: int) -> Iterator[Todo]:
    """Programs with control flow; those that cannot be compiled are left out."""
    for seed in range(n):
        module = control_flow.load(Generator(seed).program().source(), f"hints_{seed}")
        try:
            graph = trace(module.program, budget=control_flow.BUDGET)
        except SgcError:
            continue
        finally:
            sys.modules.pop(module.__name__, None)
        options = RunOptions(seed=seed, allow_tools=resolve_tools(tools_in(module)))
        yield Todo(
            f"branching {seed}", Program(optimize(graph, 1)), control_flow.ARGUMENTS[0], options
        )


@contextmanager
def no_hints() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_hints, "told", lambda: None)
        patch.setattr(run_hints, "reusable", lambda prompt: None)
        yield


def stats(endpoint: Runtime) -> Any:
    engine: Any = endpoint.backend
    return shared.run(engine.stats())


def outcome(todo: Todo, endpoint: Runtime) -> object:
    """What a run gives and asked for, or the kind of error with which it ends: which of its streams
    fails first, and what others have asked for by then, depends on time."""
    try:
        result = todo.program.run_once(todo.arguments, todo.options, endpoint)
    except SgcError as error:
        return type(error).__name__
    streams = [(s.name, s.path, s.text, dict(s.variables)) for s in result.streams]
    return streams, result.ret_value, asked(result)


def outcomes(todo: Sequence[Todo], endpoint: Runtime) -> list[object]:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(lambda each: outcome(each, endpoint), todo))


def differing(todo: Sequence[Todo], by_program: Runtime, unhinted: Runtime) -> list[str]:
    with no_hints():
        wanted = outcomes(todo, unhinted)
    found = outcomes(todo, by_program)
    return [each.name for each, a, b in zip(todo, wanted, found, strict=True) if a != b]


@pytest.mark.slow
def test_hints_change_no_text_and_no_request(by_program: Runtime, unhinted: Runtime) -> None:
    todo = [*straight(N_PROGRAMS), *branching(N_CONTROL_FLOW)]
    assert differing(todo, by_program, unhinted) == []
    assert stats(by_program).evicted_tokens > 0


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_hints_of_many_programs(by_program: Runtime, unhinted: Runtime) -> None:
    todo = straight(int(os.environ.get("PROGRAMS", "1000")))
    some = branching(int(os.environ.get("CONTROL_FLOW", "100")))
    n_compared = 0
    for kind in (todo, some):
        while part := [each for each, _ in zip(kind, range(50), strict=False)]:
            assert differing(part, by_program, unhinted) == []
            n_compared += len(part)
    print(n_compared, "programs;", stats(by_program).preemptions, "requests preempted")
