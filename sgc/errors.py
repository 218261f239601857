"""Every error a user can cause. This module loads nothing, so every folder may use it.

An error says what was expected, what was found, the user's line, and what to do.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable
from functools import cache
from itertools import islice
from typing import Any

MAX_BESIDE = 1000  # files that are looked at for one that was meant


def closest(given: str, known: Iterable[str]) -> str:
    """`. Did you mean 'x'?` for a mistyped name, or nothing if none is like it."""
    import difflib

    found = difflib.get_close_matches(given, list(known), n=1)
    return f". Did you mean {found[0]!r}?" if found else ""


def counted(n: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def closest_file(path: str | os.PathLike[str]) -> str:
    """The same for a file that is not there, of those of its kind beside it."""
    folder, name = os.path.split(os.fspath(path))
    kind = os.path.splitext(name)[1]
    try:
        with os.scandir(folder or ".") as found:
            beside = [each.name for each in islice(found, MAX_BESIDE)]
    except OSError:
        return ""
    return closest(name, [each for each in beside if os.path.splitext(each)[1] == kind])


class SgcError(Exception):
    """Base of all errors a user can cause.

    where: the user's line, "file.py:12"; hint: what to do about it.
    """

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"\n  {self.hint}" if self.hint else ""
        return f"{place}{self.message}{hint}"


class SgcWarning(UserWarning):
    """The program is probably not what its author meant; its behaviour is documented."""


class UsageError(SgcError):
    """An invalid command or call; the command line exits with 2."""


class LogOptionsError(UsageError):
    """A run that goes on has another seed or other options than its log."""


class ArgumentError(UsageError):
    """A missing, surplus or wrongly typed argument of a program or a tool.

    is_of_run: found while tracing, for what is known only at run time: runs may end otherwise.
    """

    is_of_run = False


class WordError(UsageError, TypeError):
    """A word of the language is called with an argument that it does not have."""


class ForkError(UsageError):
    """A fork into a number of streams that it cannot have."""


class AppendError(UsageError):
    """A value appended to a stream is neither text nor an expression."""


class TraceError(SgcError):
    """The program does something that cannot be traced.

    needs: the numeric arguments that the trace needs the values of; fails_at: the line at which a
    compiled run alone would fail, if that is the error.
    """

    needs: frozenset[str] = frozenset()
    fails_at: str = ""


class RaisedInTrace(TraceError):
    """A line of the program raised an exception while it was traced."""


class VerifyError(SgcError):
    """A graph breaks the rules of the IR; the message lists every violation."""


class PassFailed(SgcError):
    """A pass failed or made an invalid graph: a bug in sgc, not in the program.

    pass_name: the pass; graph: the `Graph` that it was given.
    """

    def __init__(self, pass_name: str, graph: Any, why: str) -> None:
        super().__init__(
            f"the pass {pass_name} failed: {why}",
            hint="run without it (-p or a lower -O), and please report it",
        )
        self.pass_name, self.graph = pass_name, graph


class ParseError(SgcError):
    """The text form of a program is malformed."""


class LoadError(SgcError):
    """A `.sgir` file is missing, truncated, altered or of an unknown version."""


class NoSuchFile(LoadError, UsageError):
    """A program's file is not there."""


class GuardError(SgcError):
    """A program no longer matches what it was compiled from or for."""


class UnknownVariable(SgcError, KeyError):
    """A variable was read that has not been set."""

    __str__ = SgcError.__str__

    @classmethod
    def among(cls, name: object, known: Iterable[str], where: str) -> UnknownVariable:
        """The error for a name of a stream that has these."""
        return cls(
            f"no variable {name!r} has been set on this stream; there are: "
            f"{', '.join(known) or 'none yet'}",
            where=where,
            hint="a name can be read after the gen or select that sets it was appended",
        )


class ProgramError(SgcError):
    """A program failed while running; `__cause__` is the reason."""


class ProgramRaised(ProgramError):
    """A compiled program raised an exception of its own, which the message names.

    If that is a builtin exception, or derives from one, this error derives from it too:
    `except ValueError` catches a `JSONDecodeError` and the program's own kinds of ValueError.
    """


@cache
def raised_as(*names: str) -> type[ProgramRaised]:
    """The error class for a compiled program that raises an exception. names: of its class and of
    its bases, of which the first plain builtin exception counts."""
    found = next(filter(_is_plain, (getattr(builtins, name, None) for name in names)), None)
    if found is None:
        return ProgramRaised
    return type(ProgramRaised.__name__, (ProgramRaised, found), {})


def _is_plain(kind: Any) -> bool:
    """Whether it is an exception that another class may derive from: OSError, UnicodeError and
    others take arguments of their own."""
    is_own = isinstance(kind, type) and issubclass(kind, Exception) and kind is not Exception
    return is_own and kind.__basicsize__ == Exception.__basicsize__


class TurnsExceeded(ProgramError):
    """A loop goes on beyond `max_turns` of its function."""


class JoinFailed(ProgramError):
    """Fewer children of a fork met a join's predicate than it waits for."""


class CutOff(ProgramError):
    """The program used a child of a fork that a join cut off."""


class DeoptReached(ProgramError):
    """A run reached a path that was not compiled."""


class ToolError(ProgramError):
    """A tool is not allowed, differs from the compiled one, or failed; `__cause__` says how."""


class UnknownOutcome(ToolError):
    """The log says that a tool with an effect was started, but not that it succeeded."""


class RunLogError(SgcError):
    """A run's log cannot be written, is malformed, or lacks what is needed from it."""


class LogUnwritable(RunLogError):
    """A run's log cannot be written any more: the disk is full, say."""


class OutputError(SgcError):
    """The file of a job's results cannot be written, is not this job's, or is damaged."""


class NotRecorded(RunLogError):
    """A replayed run makes a request that the recording does not have."""


class CacheError(SgcError):
    """The folder of a result cache cannot be used."""


class NonDeterministicProgram(RunLogError):
    """A program made a different request than when its log was written."""


class UnsupportedParameter(SgcError):
    """A backend cannot honour a parameter; it is never dropped silently."""


class BudgetExceeded(SgcError):
    """The next request might cost more than is left of the user's budget."""


class BackendError(SgcError):
    """A backend refused or failed a request."""

    retryable = False


class ContextExceeded(BackendError):
    """A prompt is longer than the model's context or the engine's pool."""


class Overloaded(BackendError):
    """The backend asks to be tried again later. retry_after_s: when, if it says so."""

    retryable = True
    retry_after_s: float | None = None


class DeadlineExceeded(BackendError):
    """A request or a run took longer than it may."""


class EngineUnavailable(BackendError):
    """No engine answers at the given address, or it stopped."""

    retryable = True


class BatchStopped(BackendError):
    """A provider does not take a batch of requests, or somebody cancelled it there: what was asked
    has no result, and the job ends."""
