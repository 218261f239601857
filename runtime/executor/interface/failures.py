"""A tool call that failed, as data: a log keeps it, and a program can handle it.

A handler matches a failure by the class names of its exception, so a failure from a log or from
another process is handled like a new one.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sgc.errors import SgcError, ToolError, raised_as

MAX_CHARS = 100_000  # of an exception's message
MAX_CLASSES = 100
_PROGRAM = "_sgc_program_"  # prefix of modules that the command line imports from a file
HINT = (
    "on_error=VALUE of @sgc.tool is the value that the program sees instead; or handle the "
    "failure there, try: … except Exception:"
)


_BUILTIN = "builtins:"


def class_name(kind: type) -> str:
    """Returns `module:name`; for a file that is run by its path, the module is its stem."""
    module = kind.__module__
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is not None and (module == "__main__" or module.startswith(_PROGRAM)):
        module = Path(file).stem
    return f"{module}:{kind.__qualname__}"


def class_names(kind: type[BaseException]) -> tuple[str, ...]:
    """Returns the names of a class and its base classes up to Exception."""
    found = (class_name(each) for each in kind.__mro__ if each not in (BaseException, object))
    return tuple(found)[:MAX_CLASSES]


def forget_frames(error: BaseException | None) -> None:
    """Drops the tracebacks of an error and of those that led to it."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


@dataclass(frozen=True, slots=True)
class Failed:
    """The value of a failed tool call, or of a failed `evaluate`, that the program may handle.

    tool: its name, empty for `evaluate`; kind: the name of the exception's class; why: its
    message; classes: its `class_names`; where: the program's line; cause: the exception, if this
    process has it.
    """

    tool: str
    kind: str
    why: str
    classes: tuple[str, ...]
    where: str
    cause: BaseException | None = field(default=None, compare=False)

    @staticmethod
    def of(tool: str, error: BaseException, where: str) -> Failed:
        if isinstance(error, MadeUp):
            return replace(error.failed, tool=tool, where=where)
        kind = type(error)
        if not tool:  # of code of the graph: its frames hold the run, which holds this
            forget_frames(error)
        return Failed(tool, kind.__name__, _said(error), class_names(kind), where, error)

    @staticmethod
    def decoded(tool: str, found: Any, where: str) -> Failed:
        """Reads a failure of a log; raises ValueError, TypeError or KeyError if it is malformed."""
        kind, why, classes = found["kind"], found["why"], found["classes"]
        if not isinstance(classes, list) or len(classes) > MAX_CLASSES:
            raise ValueError("the classes of a failure are not a list of names")
        if not all(isinstance(each, str) for each in (kind, why, *classes)):
            raise TypeError("the fields of a failure are not texts")
        return Failed(tool, kind, why, tuple(classes), where)

    def encoded(self) -> dict[str, Any]:
        return {"kind": self.kind, "why": self.why, "classes": list(self.classes)}

    @property
    def text(self) -> str:
        return f"{self.kind}: {self.why}"

    def error(self) -> SgcError:
        """Returns the error of a run that does not handle the failure."""
        if not self.tool:
            args = () if self.cause is None else self.cause.args
            why = args[0] if len(args) == 1 and isinstance(args[0], str) else self.why
            bases = (name.removeprefix(_BUILTIN) for name in self.classes)
            return raised_as(self.kind, *bases)(f"{self.kind}: {why}", where=self.where)
        if isinstance(self.cause, ToolError):
            return self.cause
        found = ToolError(
            f"the tool {self.tool!r} failed: {self.text}", where=self.where, hint=HINT
        )
        found.__cause__ = self.cause
        return found


class MadeUp(Exception):
    """Raised by a made-up tool to simulate a failure."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.text)
        self.failed = failed


def _said(error: BaseException) -> str:
    """Returns an exception's message as text that can be written; its own code may fail."""
    try:
        text = error.message if isinstance(error, ToolError) else str(error)
    except Exception as failure:
        text = f"(its text cannot be made: {type(failure).__name__})"
    return text[:MAX_CHARS].encode("utf-8", "backslashreplace").decode()
