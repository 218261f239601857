"""The paths of a program that end with its own error.

Where such an error surely ends the program, its path is made at once: a run of the program would
only come to the same place once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from sgc.core.places import user_loc
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
    """Ends the path with the error that the program raises there."""
    told = error.__dict__ if isinstance(error, TracedTold) else {}
    with session.located(loc):
        of = {"failed": session.operand(told["value"])} if told else {}
        name = type(error).__name__
        if told:
            failed = of["failed"]
            is_tool = isinstance(failed, Ref) and session.made[failed.name][0] == "tool"
            name = "ToolError" if is_tool else "Exception"
        session.emit("fail", [], error=Lit(name), message=session.scalar(message), **of)
    session.is_over = True


def message_of(error: Exception) -> str:
    """An error's message, which may be an abstract text."""
    if isinstance(error, SgcError) and not isinstance(error, TracedTold):
        return error.message
    if len(error.args) == 1 and isinstance(error.args[0], str):
        return error.args[0]
    return str(error)


def fail_aside(session: Failing, fact: Fact, raising: Callable[[], NoReturn]) -> None:
    """Makes the arm that the path has just left to others, on which `raising` raises an error that
    ends the program; and the arms of the tests by which it chooses among errors.

    fact: the test of that arm, which is false there.
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
