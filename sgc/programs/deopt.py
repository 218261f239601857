"""Runs of partly compiled programs: the interpreter continues where the compiled part ends.

It starts the program anew and reads the run's log, so no request and no effect is repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from sgc.errors import DeoptReached
from sgc.ir.analysis.interpreted import may_leave
from sgc.ir.graph import Graph
from sgc.programs.program import Program
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult


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

    interpret: interprets the whole program with the given options, which hold the log.
    """
    with ExitStack() as stack:
        if options.log is None:
            options = replace(options, log=stack.enter_context(RunLog.temporary()))
        work = program.start(backend, arguments, options)
        try:
            return asyncio.run_coroutine_threadsafe(work, shared.loop).result()
        except DeoptReached:
            return interpret(options)
