"""Starting interpreted runs, and waiting for them."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sgc.core.session import Stream
from sgc.errors import ProgramError
from sgc.interpreter.bodies import run_here
from sgc.interpreter.maps import map_eagerly
from sgc.interpreter.session import EagerSession
from sgc.ir.graph import Node
from sgc.lang.definition import Definition
from sgc.lang.state import ProgramState
from sgc.runs.streaming import TextLog
from sgc.runtime.executor.instance import Instance
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.log.run_log import header_of
from sgc.runtime.executor.run.context import Context, OnText
from sgc.runtime.executor.run.loop import Loop
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult
from sgc.tracing.watch.guards import guards_of


class Canceller:
    """Stops the interpreted runs that it is given, also a run that is only about to start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: list[EagerSession] = []
        self._is_cancelled = False

    def add(self, session: EagerSession) -> None:
        with self._lock:
            self._sessions.append(session)
            if self._is_cancelled:
                session.cancel()

    def forget(self) -> None:
        """Drops runs that are over, and thereby everything that they hold."""
        with self._lock:
            self._sessions.clear()

    def cancel(self) -> None:
        with self._lock:
            self._is_cancelled = True
            for session in self._sessions:
                session.cancel()


def start_eager(
    function: Definition,
    arguments: Mapping[str, Any],
    backend: Backend,
    options: RunOptions,
    loop: Loop,
    on_text: OnText | None = None,
    canceller: Canceller | None = None,
) -> ProgramState:
    """Runs the body on this thread, while generations run on `loop`.

    Returns when the body has ended, not when every generation has. An exception of the body cancels
    the requests in flight and is raised unchanged. canceller: may stop the run from outside.
    """
    session = _open_session(function, arguments, backend, options, loop, on_text, None)
    if canceller is not None:
        canceller.add(session)
    return run_here(function, session, arguments)


def run_eager(
    function: Definition,
    arguments: Mapping[str, Any],
    backend: Backend,
    options: RunOptions,
    loop: Loop,
    on_text: OnText | None,
    canceller: Canceller,
) -> RunResult:
    """Interprets a program to its end, on this thread; the result has what its Python returned, in
    its own classes. canceller: may stop the run."""
    try:
        state = start_eager(function, arguments, backend, options, loop, on_text, canceller)
        result, returned = finished(state), state.ret_value
        return result if _holds_stream(returned) else replace(result, ret_value=returned)
    finally:
        canceller.forget()


def _holds_stream(value: Any) -> bool:
    """Whether a stream is in a value that is returned, whose text stands for it in a result."""
    if isinstance(value, (list, tuple)):
        return any(map(_holds_stream, value))
    return isinstance(value, Stream) or (
        isinstance(value, dict) and any(map(_holds_stream, value.values()))
    )


def start_streaming(
    function: Definition,
    arguments: Mapping[str, Any],
    backend: Backend,
    options: RunOptions,
    loop: Loop,
    on_text: OnText | None = None,
) -> ProgramState:
    """Runs the body on a thread of its own and at once returns the run's state, to be followed.

    An exception of the body ends the run and is raised to whoever reads the state.
    """
    log = TextLog()

    def show(node: Node, path: str, text: str) -> None:
        log.add(node, path, text)
        if on_text is not None:
            on_text(node, path, text)

    session = _open_session(function, arguments, backend, options, loop, show, log)
    opened: list[ProgramState] = []
    is_open = threading.Event()

    def on_open(state: ProgramState) -> None:
        opened.append(state)
        is_open.set()

    def work() -> None:
        try:
            session.adopt_thread()
            run_here(function, session, arguments, on_open)
        except BaseException as error:
            log.close(error)
        finally:
            is_open.set()

    context = contextvars.copy_context()
    name = f"sgc-{function.name}"
    threading.Thread(target=context.run, args=(work,), name=name, daemon=True).start()
    is_open.wait()
    if not opened:
        raise log.error or ProgramError(f"{function.name} could not be started")
    return opened[0]


def _open_session(
    function: Definition,
    arguments: Mapping[str, Any],
    backend: Backend,
    options: RunOptions,
    loop: Loop,
    on_text: OnText | None,
    log: TextLog | None,
) -> EagerSession:
    run_log, header = options.log, None
    if run_log is not None:
        header = header_of(function.name, guards_of(function, {}), options)

    async def open_instance() -> Instance:
        capabilities = await backend.capabilities()
        if run_log is not None and header is not None:
            run_log.begin(header, options.row, arguments, capabilities)
        context = Context.of(function.name, backend, capabilities, options, on_text)
        instance = Instance(context, {})
        if log is not None:
            instance.finished.add_done_callback(lambda done: log.close(done.exception()))
        return instance

    instance = loop.run(open_instance())
    session = EagerSession(function.name, instance, loop, map_eagerly, log)
    session.note_arguments(arguments)
    return session


def finished(state: ProgramState) -> RunResult:
    """Waits for everything that an eager run has started; raises the run's first error."""
    session = state.session
    if not isinstance(session, EagerSession):
        raise ProgramError("a traced program has no result; run it first")
    return session.result()
