"""The paths of a program that end with its own error.

Where such an error surely ends the program, its path is made at once: another run of the program
would only reach the same place again.
"""

from __future__ import annotations

import dis
import linecache
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from sgc.core.places import user_loc
from sgc.core.stops import INTERPRET
from sgc.core.watching import unwatched
from sgc.errors import SgcError, TraceError
from sgc.ir.graph import Lit, Loc, Operand, Ref
from sgc.tracing.paths.explore import Path
from sgc.tracing.paths.facts import Fact, Facts
from sgc.tracing.values.tool_failures import TracedTold


class Failing(Protocol):
    """A trace that may end a path with an error."""

    path: Path | None
    facts: Facts
    is_over: bool
    made: dict[str, tuple[str, Mapping[str, Operand]]]

    def operand(self, value: Any) -> Operand: ...

    def scalar(self, value: Any) -> Operand: ...

    def located(self, loc: Loc | None) -> Any: ...

    def emit(self, op: str, results: list[Any], **fields: Operand) -> Any: ...


def fail(session: Failing, error: Exception, message: str, loc: Loc | None) -> None:
    """Ends the path with an error that the program raises."""
    _refuse_own(error, loc)
    told = error.__dict__ if isinstance(error, TracedTold) else {}
    with session.located(loc):
        of: dict[str, Operand] = {"failed": session.operand(told["value"])} if told else {}
        name = type(error).__name__
        if told:
            failed = of["failed"]
            is_tool = isinstance(failed, Ref) and session.made[failed.name][0] == "tool"
            name = "ToolError" if is_tool else "Exception"
        elif base := _base_of(type(error)):
            of["base"] = Lit(base)
        session.emit("fail", [], error=Lit(name), message=session.scalar(message), **of)
    session.is_over = True


def _base_of(kind: type[Exception]) -> str:
    """The builtin class that an exception's class derives from; empty for a builtin class."""
    bases = [each for each in kind.__mro__ if each.__module__ == "builtins"]
    plain = [each for each in bases if each.__basicsize__ == Exception.__basicsize__]
    found = plain[0]
    return "" if found in (kind, Exception) else found.__name__


# Folders where an error is the tracer's own, unless its line has a `raise` or a comment that the
# error is Python's.
_ROOMS = frozenset({
    "code", "convert", "inference", "kinds", "paths", "pieces", "recording", "snapshots", "values",
    "watch",
})  # fmt: skip
_SAYS = "# raises"


def _refuse_own(error: Exception, loc: Loc | None) -> None:
    """Stops the trace at a fault of the tracer, which is not an error of the program."""
    place = _fault_of(error)
    if place:
        raise TraceError(
            f"sgc itself failed while it traced this line: {type(error).__name__} at {place}",
            where=str(loc or ""),
            hint="please report it; " + INTERPRET,
        )


def _fault_of(error: Exception) -> str:
    """Where the tracer itself has failed; empty for an error of the program."""
    last = traceback = object.__getattribute__(error, "__traceback__")
    while traceback is not None:
        last, traceback = traceback, traceback.tb_next
    if last is None or isinstance(error, (RecursionError, MemoryError)):
        return ""
    module, code = last.tb_frame.f_globals.get("__name__", ""), last.tb_frame.f_code
    of, _, room = module.partition(".tracing.")
    if of != "sgc" or room.partition(".")[0] not in _ROOMS:
        return ""
    is_raised = dis.opname[code.co_code[last.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")
    with unwatched():  # the program does not read our source here
        line = linecache.getline(code.co_filename, last.tb_lineno)
    is_told = not line or _SAYS in line
    is_programs = is_told or (is_raised and not isinstance(error, AssertionError))
    return "" if is_programs else f"{module}:{last.tb_lineno}"


def message_of(error: Exception) -> str:
    """An error's message, which may be an abstract text."""
    if isinstance(error, SgcError) and not isinstance(error, TracedTold):
        return error.message
    if len(error.args) == 1 and isinstance(error.args[0], str):
        return error.args[0]
    return str(error)


def fail_aside(session: Failing, fact: Fact, raising: Callable[[], NoReturn]) -> None:
    """Makes the arm that the path has just left for later, on which `raising` raises an error that
    ends the program; also the arms of the tests by which `raising` chooses among errors.

    fact: the test of that arm, which is False on it.
    """
    path, facts = session.path, session.facts
    assert path is not None
    left = path.exploration.left
    n_left = len(left) - 1
    first = left[-1]
    try:
        while len(left) > n_left:
            item = left.pop()
            session.path = aside = Path.beside(path, first, item)
            session.facts, session.is_over = Facts(facts | {fact: False}), False
            _end(session, aside, raising)
    finally:
        session.path, session.facts, session.is_over = path, facts, False


def _end(session: Failing, aside: Path, raising: Callable[[], NoReturn]) -> None:
    try:
        raising()
    except (AssertionError, TraceError):  # a fault of the tracer, or a refusal
        raise
    except Exception as error:
        fail(session, error, message_of(error), user_loc())
        aside.stop()
