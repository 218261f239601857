"""Helpers shared by tests: `run_both` asserts that interpreted and compiled runs are equal.

At -O0 their requests are equal too; at higher levels passes may drop some. -O3 may change prompts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from sgc.passes.pipeline import optimize
from sgc.programs.function import Function
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult


def results(result: RunResult) -> tuple[object, ...]:
    """Texts, variables and the return value of a run."""
    streams = [(s.name, s.path, s.text, dict(s.variables)) for s in result.streams]
    return result.program, streams, result.ret_value


def asked(result: RunResult) -> list[tuple[object, ...]]:
    """All requests, in an order that does not depend on timing."""
    return sorted((r.identity() for r in result.requests), key=repr)


def at_levels(function: Function, **bind: Any) -> list[Program]:
    """The program at -O0, -O1 and -O2."""
    traced = function.compile(opt_level=0, **bind)
    made = [replace(traced, graph=optimize(traced.graph, level), level=level) for level in (1, 2)]
    return [traced, *made]


def run_both(
    function: Function,
    endpoint: Endpoint,
    bind: dict[str, Any] | None = None,
    programs: Sequence[Program] = (),
    **arguments: Any,
) -> RunResult:
    """Runs a program interpreted and compiled, asserts equality, and returns the result.

    programs: from `at_levels`, to compile only once.
    """
    options = RunOptions(seed=7)
    bind = bind or {}
    interpreted = function.run_once({**bind, **arguments}, options, endpoint)
    for program in programs or at_levels(function, **bind):
        compiled = program.run_once(arguments, options, endpoint)
        assert results(compiled) == results(interpreted)
        if program.level == 0:
            assert asked(compiled) == asked(interpreted)
    return interpreted


def written(tmp_path: Path, body: str, name: str = "prog.py") -> str:
    """Writes a program to a file, after `import sgc`; returns its path."""
    path = tmp_path / name
    path.write_text("import sgc\n" + body)
    return str(path)


def by_c(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives that C calls where a trace cannot see it."""
    return defaultdict(partial(function, *args))[0]


def one_in(n: int, *axes: Iterable[Any]) -> list[Any]:
    """All combinations of parameters: one in `n` is quick, and the others are slow tests.

    Each value is in a quick one if the other axes have at least `n` values.
    """
    made = product(*(enumerate(axis) for axis in axes))
    return [
        pytest.param(
            *(value for _, value in each),
            marks=pytest.mark.slow if sum(at for at, _ in each) % n else (),
        )
        for each in made
    ]
