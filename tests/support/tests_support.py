"""Helpers shared by tests: `run_both` holds interpreted and compiled runs equal.

At -O0 the requests too; above, passes may ask less. -O3 may change prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sgc.passes.pipeline import optimize
from sgc.programs.function import Function
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult


def results(result: RunResult) -> tuple[object, ...]:
    """Texts, variables and the returned value."""
    streams = [(s.name, s.path, s.text, dict(s.variables)) for s in result.streams]
    return result.program, streams, result.ret_value


def asked(result: RunResult) -> list[tuple[object, ...]]:
    """Every request, in an order that does not depend on time."""
    return sorted((r.identity() for r in result.requests), key=repr)


def at_levels(function: Function, **bind: Any) -> list[Program]:
    """The program as it was traced, and after the passes of a level and of the next."""
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
    """The result, the same in every way the program can be run. programs: `at_levels`."""
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
    """The path of a program that is written to a file, past its import of sgc."""
    path = tmp_path / name
    path.write_text("import sgc\n" + body)
    return str(path)
