"""Every workload at once on an engine whose pool holds a part of what runs: what compiling gains.

`plain`: the graphs of -O0, on an engine that goes by `lpm` and is told nothing of programs.
`compiled`: those of -O2, with their hints, by the policy `program`; `early`: the same, and pure
tools begin early. So many runs are in flight, of all workloads in one order, and the next begins
when one ends.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from workloads import Workload

from sgc.ir.graph import Graph
from sgc.lang.tools import resolve_tools
from sgc.programs.program import Program
from sgc.runs.endpoints import Runtime
from sgc.runtime.executor.backends.engine import run_hints
from sgc.runtime.executor.run.options import RunOptions

POLICIES = {"plain": "lpm", "compiled": "program", "early": "program"}


@dataclass(frozen=True)
class Load:
    """runs: of each workload; width: in flight; pool: tokens; model: a folder, or "" for ours."""

    runs: int
    width: int
    pool: int
    model: str


def under_load(
    todo: Sequence[Workload], graphs: Mapping[str, Mapping[str, Graph]], load: Load, reps: int
) -> dict[str, dict[str, float]]:
    """Mean seconds of a run by workload, and the ratio of plain to compiled. graphs: of each
    workload, plain and compiled."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    engines = {kind: _engine(kind, load) for kind in POLICIES}
    try:
        for rep in range(reps):
            for kind, engine in engines.items():
                engine.flush_cache()
                for name, seconds in _run(todo, graphs, kind, engine, load, rep):
                    times[name][kind].append(seconds)
                    times["all"][kind].append(seconds)
    finally:
        for engine in engines.values():
            engine.shutdown()
    return {name: _row(by_kind) for name, by_kind in times.items()}


def _engine(kind: str, load: Load) -> Runtime:
    return Runtime(load.model or None, policy=POLICIES[kind], pool_tokens=load.pool)


def _run(
    todo: Sequence[Workload],
    graphs: Mapping[str, Mapping[str, Graph]],
    kind: str,
    engine: Runtime,
    load: Load,
    seed: int,
) -> list[tuple[str, float]]:
    def timed(task: tuple[Workload, dict[str, Any]]) -> tuple[str, float]:
        workload, row = task
        graph = graphs[workload.name]["plain" if kind == "plain" else "compiled"]
        program = Program(graph, level=0)
        options = RunOptions(
            seed=1, temperature=0, allow_tools=resolve_tools(workload.tools),
            early_tools=kind == "early",
        )  # fmt: skip
        begin_s = time.perf_counter()
        program.run_once(row, options, engine)
        return workload.name, time.perf_counter() - begin_s

    tasks = [(each, each.rows[n % len(each.rows)]) for each in todo for n in range(load.runs)]
    random.Random(seed).shuffle(tasks)
    with _hints(kind != "plain"), ThreadPoolExecutor(load.width) as threads:
        return list(threads.map(timed, tasks))


@contextmanager
def _hints(are_told: bool) -> Iterator[None]:
    if are_told:
        yield
        return
    with (
        mock.patch.object(run_hints, "told", return_value=None),
        mock.patch.object(run_hints, "reusable", return_value=None),
    ):
        yield


def _row(by_kind: Mapping[str, Sequence[float]]) -> dict[str, float]:
    means = {f"{kind}_s": statistics.mean(times) for kind, times in by_kind.items()}
    gain = means["plain_s"] / means["compiled_s"]
    return {name: round(value, 4) for name, value in {**means, "gain": gain}.items()}
