"""Runs a program's Python once with abstract arguments; its errors end the path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sgc.core.places import innermost_user_line, innermost_user_loc, is_raised_inside
from sgc.core.stops import told_at
from sgc.errors import (
    AppendError,
    ArgumentError,
    ForkError,
    ProgramError,
    RaisedInTrace,
    SgcError,
    TraceError,
    UnknownVariable,
)
from sgc.interpreter.bodies import run_body
from sgc.lang.definition import Definition
from sgc.tracing.failing import fail, message_of
from sgc.tracing.kinds.sets import copied_data, has_lost
from sgc.tracing.misnamed import misnamed
from sgc.tracing.operators.live.pieces import live_arguments
from sgc.tracing.session import TraceSession
from sgc.tracing.told_arguments import told
from sgc.tracing.values.abstract import INTERPRET, stop
from sgc.tracing.watch.guards import plain


def run_traced(
    function: Definition,
    session: TraceSession,
    arguments: Mapping[str, Any],
    schemas: Mapping[str, str],
) -> None:
    """Runs a program's body. An error that the body raises ends the path, or becomes a TraceError
    if the program has no decisions."""
    try:
        with session.active(), session.located(function.loc):
            arguments = told(session, function, arguments, schemas)
            if session.sites.is_live:
                arguments = live_arguments(session, arguments)
        run_body(function, session, arguments)
        with told_at(function.loc):
            session.refuse_changes()
    except (ProgramError, UnknownVariable) as error:
        _fail(session, error, message_of(error))
    except ArgumentError as error:
        if not error.is_of_run:
            raise
        _fail(session, error, error.message)
    except ForkError as error:
        _fail(session, error, error.message)
    except AppendError as error:
        if not session.has_untyped:  # else the value may be a text in another run
            raise
        _fail(session, error, error.message)
    except SgcError:
        raise
    except RecursionError as error:
        raise TraceError(
            f"{function.name} recurses too deeply while being traced",
            where=innermost_user_line(error),
            hint="a recursion must end by a static argument, before Python's own limit",
        ) from error
    except SystemExit as error:
        if type(error) is not SystemExit:  # the command's own, of a signal
            raise
        raise TraceError(
            f"the program calls exit({'' if error.code is None else repr(error.code)}) while being "
            "traced; a compiled program cannot",
            where=innermost_user_line(error),
            hint="return from the program, or raise an error",
        ) from error
    except Exception as error:
        if session.path is not None:
            _fail(session, error, message_of(error))
            return
        if (told_better := misnamed(error)) is not None:
            raise told_better from error
        raise RaisedInTrace(
            f"the program raised {type(error).__name__} while being traced: "
            + session.shown(message_of(error)),
            where=innermost_user_line(error),
        ) from error


def _fail(session: TraceSession, error: Exception, message: str) -> None:
    """Ends a path with an error that the program raises."""
    if isinstance(error, AssertionError) and is_raised_inside(error):
        raise TraceError(
            "the tracer failed, which is a fault of its own",
            where=innermost_user_line(error),
            hint=INTERPRET,
        ) from error
    path = session.path
    if path is None or session.ended is not None or session.stopped is not None:
        raise error
    with session.active():
        fail(session, error, message, innermost_user_loc(error))


def copied(value: Any) -> Any:
    """A copy of plain data, so that the program changes nothing outside; any other value, and a set
    whose order a copy cannot have, itself."""
    return value if plain(value) is None or has_lost(value) else copied_data(value)


def refuse_changed_arguments(bound: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    for name, value in bound.items():
        if plain(value) != plain(given[name]):
            stop(
                f"the program changes its argument {name!r}; a compiled program would not",
                hint="make a copy of it in the program; or " + INTERPRET,
            )
