"""Runs that the interpreter goes on with: where the compiled part ends, or at a limit.

It starts the program anew. For a partly compiled program it reads the run's log, so no request and
no effect is repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from sgc.errors import DeoptReached
from sgc.ir.analysis.host_calls import has_effect
from sgc.ir.analysis.interpreted import may_leave
from sgc.ir.graph import Graph
from sgc.programs.program import Program
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.interface.tools import Shown
from sgc.runtime.executor.interface.value_limits import LimitExceeded
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult
from sgc.runtime.executor.tools.shown import show


def may_deopt(graph: Graph) -> bool:
    """Whether a run of a program may have to go on in the interpreter."""
    return may_leave(graph)


def run_with_deopt(
    program: Program,
    backend: Backend,
    arguments: Mapping[str, Any],
    options: RunOptions,
    interpret: Callable[[RunOptions], RunResult],
) -> RunResult:
    """Runs a partly compiled program; blocks, so never call it on the shared loop.

    interpret: interprets the whole program with the given options, which hold the log. What the
    program shows is shown at the end, as the interpreter would show it again.
    """
    held: list[Shown] = []
    with ExitStack() as stack:
        if options.log is None:
            options = replace(options, log=stack.enter_context(RunLog.temporary()))
        work = program.start(backend, arguments, replace(options, on_show=held.append))
        try:
            return asyncio.run_coroutine_threadsafe(work, shared.loop).result()
        except DeoptReached:
            held.clear()
            return interpret(options)
        finally:
            for each in held:
                show(each, options)


async def within_limits(
    program: Program, run: Awaitable[RunResult], interpret: Callable[[], RunResult]
) -> RunResult:
    """A compiled run; one that ends at a limit of compiled programs alone is interpreted instead,
    if none of what it did can be seen twice."""
    try:
        return await run
    except LimitExceeded:
        if any(map(has_effect, program.graph.all_nodes())):
            raise
    return await asyncio.to_thread(interpret)
