"""Running the body of a program on a stream, eagerly or traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sgc.core.failures import leaving
from sgc.core.places import outermost
from sgc.core.session import Session
from sgc.interpreter.session import EagerSession
from sgc.ir import types
from sgc.ir.graph import Lit, Operand, Ref
from sgc.lang.definition import Definition
from sgc.lang.state import ProgramState
from sgc.runtime.executor.instance import Instance

OnOpen = Callable[[ProgramState], None]


def call(
    function: Definition,
    session: Session,
    arguments: Mapping[str, Any],
    on_open: OnOpen | None = None,
    path: str = "",
    after: tuple[Ref, ...] = (),
) -> ProgramState:
    """Opens a stream for a call of `function` in a session and runs its body on it.

    path: the path of a mapped call; after: the values that must exist before the call begins.
    """
    ahead = function.num_api_spec_tokens or 0
    with session.stack.call(function.name, function.heal, path, ahead, function.max_turns) as path:
        fields: dict[str, Operand] = {"name": Lit(function.name), "path": Lit(path)}
        if after:
            fields["after"] = after
        # A nested call has the caller's line, a whole program its own first line.
        with session.located(function.loc if path == function.name else None):
            (symbol,) = session.emit("stream", [("s", types.STREAM)], **fields)
        state = ProgramState(session, function.name, symbol, path)
        session.begun(state)
        if on_open is not None:
            on_open(state)
        args, kwargs = function.signature.call_arguments(arguments)
        session.calling.append(state)
        try:
            state.ret_value = session.body(function.python)(state, *args, **kwargs)
        finally:
            session.calling.pop()
    return state


@outermost
def run_body(
    function: Definition,
    session: Session,
    arguments: Mapping[str, Any],
    on_open: OnOpen | None = None,
) -> ProgramState:
    """Runs a whole program in a session, and publishes its results at the end."""
    with session.active():
        state = call(function, session, arguments, on_open)
        with session.located(function.loc):
            session.finish(state._ret_value)
    return state


def run_here(
    function: Definition,
    session: EagerSession,
    arguments: Mapping[str, Any],
    on_open: OnOpen | None = None,
) -> ProgramState:
    """Runs the body on this thread; an error of the body stops the run and is raised unchanged."""
    try:
        state = run_body(function, session, arguments, on_open)
    except BaseException as left:
        error = leaving(left)
        session.body_ended(error)
        if session.log is not None:
            session.log.close(error)  # before the cancellation ends the run
        session.loop.run(_stop(session.instance))
        if error is left:
            raise
        raise error from error.__cause__
    session.body_ended(None)
    return state


async def _stop(instance: Instance) -> None:
    instance.cancel()
    await instance.settle()
