"""Passes requests to the core, after their constraints and stop patterns are compiled.

Compiling may take a while, so a thread of low priority does it, once for all requests with the same
constraint; the step loop continues meanwhile. The cache of compiled constraints is bounded.
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
from sgc.runtime.engine.requests.request import EngineError, Update
from sgc.runtime.engine.requests.text_rules import Constraint
from sgc.runtime.engine.step.core import EngineCore
from sgc.runtime.engine.worker.wire import request_of

MAX_COMPILED = 64
MAX_HELD = 1024
NICENESS = 19

Compile = Callable[[wpb.WorkerRequest], Constraint | None]
"""Returns None if there is no constraint; raises ValueError if it cannot be compiled."""


@dataclass(frozen=True, slots=True)
class _Held:
    message: wpb.WorkerRequest
    key: bytes
    compiled: Future[Constraint | None]


class Intake:
    """Submits requests to the core, at once or when they are compiled."""

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
        elif len(self._held) >= MAX_HELD:
            reason = f"{MAX_HELD} requests wait for their constraints already; try again later"
            self._refuse(message.id, pb.ERROR_CODE_RESOURCE_EXHAUSTED, reason)
        else:
            self._held[message.id] = held

    def cancel(self, request_id: int) -> None:
        held = self._held.pop(request_id, None)
        if held is None:
            self._core.cancel(request_id)
            return
        is_wanted = any(other.key == held.key for other in self._held.values())
        if not is_wanted and held.compiled.cancel():
            self._compiled.pop(held.key, None)

    def close(self) -> None:
        """Drops waiting compilations; a running one continues to its end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def pass_on_ready(self) -> None:
        """Submits the requests whose compilation is done."""
        for request_id in [i for i, held in self._held.items() if held.compiled.done()]:
            self._pass_on(self._held.pop(request_id))

    def take_refusals(self) -> list[Update]:
        refusals, self.refusals = self.refusals, []
        return refusals

    def _pass_on(self, held: _Held) -> None:
        message = held.message
        problem = held.compiled.exception()
        if problem is None:
            self._core.submit(request_of(message, held.compiled.result()))
        elif isinstance(problem, ValueError):
            self._refuse(message.id, pb.ERROR_CODE_INVALID_ARGUMENT, str(problem))
        else:  # a missing package, a library's panic: they must not end the engine
            self._refuse(message.id, pb.ERROR_CODE_INTERNAL, f"compiling failed: {problem!r}")

    def _refuse(self, request_id: int, code: pb.ErrorCode, message: str) -> None:
        update = Update(request_id, final=True, error=EngineError(code, message))
        self.refusals.append(update)

    def _compilation(self, key: bytes, message: wpb.WorkerRequest) -> Future[Constraint | None]:
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = self._threads.submit(self._compile, message)
            while len(self._compiled) > MAX_COMPILED:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(key)
        return found


def _key(message: wpb.WorkerRequest) -> bytes:
    """The key of what a request needs compiled; b"" for most."""
    if message.WhichOneof("kind") != "generate":
        return b""
    patterns = message.generate.stop_regex
    if not message.grammar and not patterns:
        return b""
    free_after = str(message.free_after) if message.HasField("free_after") else ""
    return "\0".join([message.grammar, free_after, *patterns]).encode()


def _be_nice() -> None:
    """Lowers this thread's priority below the step loop's; on Linux each thread has its own."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
