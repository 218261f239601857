"""Calls of programs: opening a stream and running a body on it, eagerly or traced."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sgc.errors import ProgramError
from sgc.ir import types
from sgc.ir.graph import Lit
from sgc.runtime.executor.backend import Backend
from sgc.runtime.executor.instance import Instance, OnText
from sgc.runtime.executor.loop import refuse_own_thread
from sgc.runtime.executor.options import RunOptions
from sgc.runtime.executor.record import RunResult
from sgc.session import EagerSession, Session
from sgc.state import ProgramState

if TYPE_CHECKING:
    from sgc.functions import Function


def call(function: Function, session: Session, arguments: Mapping[str, Any]) -> ProgramState:
    """Opens a stream for a call of `function` in a session and runs its body on it."""
    with session.frame(function.name) as path:
        fields = {"name": Lit(function.name), "path": Lit(path)}
        # A nested call stands at the caller's line, a whole program at its own first line.
        with session.located(function.loc if path == function.name else None):
            (symbol,) = session.emit("stream", [("s", types.STREAM)], **fields)
        state = ProgramState(session, function.name, symbol)
        state.ret_value = session.body(function)(state, **arguments)
    return state


def run_body(function: Function, session: Session, arguments: Mapping[str, Any]) -> ProgramState:
    """Runs a whole program in a session, and makes its results known at the end."""
    with session.active():
        state = call(function, session, arguments)
        with session.located(function.loc):
            session.finish(state.ret_value)
    return state


def start_eager(
    function: Function,
    arguments: Mapping[str, Any],
    backend: Backend,
    options: RunOptions,
    loop: asyncio.AbstractEventLoop,
    on_text: OnText | None = None,
) -> ProgramState:
    """Runs the body on this thread, generations going on behind it on `loop`.

    Returns when the body has ended, not when every generation has. An exception of the
    body cancels what is in flight and is raised as it is.
    """

    async def open_instance() -> Instance:
        capabilities = await backend.capabilities()
        return Instance(function.name, backend, capabilities, options, {}, on_text)

    refuse_own_thread(loop)
    instance = asyncio.run_coroutine_threadsafe(open_instance(), loop).result()
    session = EagerSession(function.name, instance, loop)
    for value in arguments.values():
        session.note_value(value)
    try:
        state = run_body(function, session, arguments)
    except BaseException:
        asyncio.run_coroutine_threadsafe(_stop(instance), loop).result()
        raise
    return state


async def _stop(instance: Instance) -> None:
    instance.cancel()
    await instance.settle()


def finished(state: ProgramState) -> RunResult:
    """Waits for everything an eager run has started; raises its first error."""
    session = state.session
    if not isinstance(session, EagerSession):
        raise ProgramError("a traced program has no result; run it first")
    return session.result()
