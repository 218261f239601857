"""Helpers shared by tests: `run_both` holds interpreted and compiled runs equal.

At -O0 the requests too; above, passes may ask less. -O3 may change prompts.
"""

from __future__ import annotations

from typing import Any

from sgc.endpoints import Endpoint
from sgc.functions import Function
from sgc.runtime.executor.options import RunOptions
from sgc.runtime.executor.record import RunResult


def results(result: RunResult) -> tuple[object, ...]:
    """Texts, variables and the returned value."""
    streams = [(s.name, s.path, s.text, dict(s.variables)) for s in result.streams]
    return result.program, streams, result.ret_value


def asked(result: RunResult) -> list[tuple[object, ...]]:
    """Every request, in an order that does not depend on time."""
    return sorted((r.identity() for r in result.requests), key=repr)


def run_both(
    function: Function, endpoint: Endpoint, bind: dict[str, Any] | None = None, **arguments: Any
) -> RunResult:
    """The result, the same in every way the program can be run."""
    options = RunOptions(seed=7)
    bind = bind or {}
    interpreted = function.run_once({**bind, **arguments}, options, endpoint)
    for level in (0, 1, 2):
        program = function.compile(opt_level=level, **bind)
        compiled = program.run_once(arguments, options, endpoint)
        assert results(compiled) == results(interpreted)
        if level == 0:
            assert asked(compiled) == asked(interpreted)
    return interpreted
