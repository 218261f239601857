"""Requests on their way to the core: what they need compiled is compiled first, elsewhere.

A constraint or a stop pattern may take a while to compile, so that is done on a thread of low
priority, once for all requests that have it; the step loop goes on meanwhile. What is kept of it
is bounded.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.core import EngineCore
from sgc.runtime.engine.request import Constraint, EngineError, Update
from sgc.runtime.engine.wire import request_of

MAX_COMPILED = 64
NICENESS = 10

Compile = Callable[[wpb.WorkerRequest], Constraint | None]
"""Raises ValueError for what cannot be compiled. None: it has no constraint."""


@dataclass(frozen=True, slots=True)
class _Held:
    message: wpb.WorkerRequest
    key: bytes
    compiled: Future[Constraint | None]


class Intake:
    """Submits requests to the core, at once or when what they need is there."""

    def __init__(self, core: EngineCore, compile_: Compile) -> None:
        self._core = core
        self._compile = compile_
        self._threads = ThreadPoolExecutor(1, "compile", initializer=_be_nice)
        self._held: dict[int, _Held] = {}
        self._compiled: OrderedDict[bytes, Future[Constraint | None]] = OrderedDict()
        self.refusals: list[Update] = []

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits for something to be compiled."""
        return bool(self._held)

    def submit(self, message: wpb.WorkerRequest) -> None:
        key = _key(message)
        if not key:
            self._core.submit(request_of(message))
            return
        held = _Held(message, key, self._compilation(key, message))
        if held.compiled.done():
            self._pass_on(held)
        else:
            self._held[message.id] = held

    def cancel(self, request_id: int) -> None:
        if self._held.pop(request_id, None) is None:
            self._core.cancel(request_id)

    def pass_on_ready(self) -> None:
        """Submits what need wait no longer."""
        for request_id in [i for i, held in self._held.items() if held.compiled.done()]:
            self._pass_on(self._held.pop(request_id))

    def take_refusals(self) -> list[Update]:
        refusals, self.refusals = self.refusals, []
        return refusals

    def _pass_on(self, held: _Held) -> None:
        message = held.message
        try:
            constraint = held.compiled.result()
        except ValueError as error:
            problem = EngineError(pb.ERROR_CODE_INVALID_ARGUMENT, str(error))
            self.refusals.append(Update(message.id, final=True, error=problem))
            return
        self._core.submit(request_of(message, constraint))

    def _compilation(self, key: bytes, message: wpb.WorkerRequest) -> Future[Constraint | None]:
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = self._threads.submit(self._compile, message)
            while len(self._compiled) > MAX_COMPILED:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(key)
        return found


def _key(message: wpb.WorkerRequest) -> bytes:
    """What a request needs compiled; nothing, for most."""
    if message.WhichOneof("kind") != "generate":
        return b""
    patterns = message.generate.stop_regex
    if not message.grammar and not patterns:
        return b""
    return "\0".join([message.grammar, *patterns]).encode()


def _be_nice() -> None:
    """Lets the step loop go first; on Linux a thread has a priority of its own."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
