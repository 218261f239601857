"""Runs the workloads' programs on an engine core, and records their calls for counting."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from workloads import Call, Program

from sgc.runtime.engine.process import tuning
from sgc.runtime.engine.requests.request import Commit, EngineRequest, Generate, Score
from sgc.runtime.engine.step.core import EngineCore


def be_tuned() -> None:
    """Restarts this program in the environment of a step process."""
    added = tuning.environment(os.environ)
    if added:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **added})


@dataclass(frozen=True, slots=True)
class Asked:
    """A call, and the tokens that it generated."""

    call: Call
    output: tuple[int, ...]


@dataclass(slots=True)
class _Running:
    program: Program
    outputs: list[Sequence[int]]
    n_missing: int


class Drive:
    """Runs programs on a core. width: the number of programs in flight, None for all."""

    def __init__(self, core: EngineCore, programs: Sequence[Program], width: int | None = None):
        self._core = core
        self._todo = deque(programs)
        self._width = width or len(programs)
        self._n_running = self._n_requests = 0
        self._waited: dict[int, tuple[_Running, int, Call]] = {}
        self._output: dict[int, list[int]] = {}
        self.asked: list[Asked] = []

    def run(self) -> list[Asked]:
        """Runs all programs to their end; raises if the engine refuses a call."""
        while True:
            while self._todo and self._n_running < self._width:
                self._n_running += 1
                self._advance(_Running(self._todo.popleft(), [], 0), first=True)
            if not self._core.has_work:
                assert not self._waited
                return self.asked
            for update in self._core.step():
                self._output[update.id] += update.new_ids
                if update.final:
                    assert update.error is None, update.error
                    self._finish(update.id)

    def _advance(self, running: _Running, first: bool = False) -> None:
        try:
            calls = next(running.program) if first else running.program.send(running.outputs)
        except StopIteration:
            self._n_running -= 1
            return
        running.outputs, running.n_missing = [()] * len(calls), len(calls)
        for i, call in enumerate(calls):
            self._n_requests += 1
            self._waited[self._n_requests] = (running, i, call)
            self._output[self._n_requests] = []
            self._core.submit(request_of(call, self._n_requests))

    def _finish(self, request_id: int) -> None:
        running, i, call = self._waited.pop(request_id)
        running.outputs[i] = output = tuple(self._output.pop(request_id))
        self.asked.append(Asked(call, output))
        running.n_missing -= 1
        if running.n_missing == 0:
            self._advance(running)


def request_of(call: Call, request_id: int) -> EngineRequest:
    kind: Generate | Score | Commit = Generate(call.n_out) if call.n_out else Commit()
    if call.choices:
        kind = Score(call.choices)
    return EngineRequest(request_id, np.array(call.prompt, np.int64), kind)
