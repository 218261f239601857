"""What is known of a tool call that failed: data, which a log keeps and a program can tell apart.

A handler matches a failure by the names of the classes that its exception had, so a failure out of
a log, or one of another process, is handled like one that has just happened.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sgc.errors import ToolError

MAX_CHARS = 100_000  # of what an exception says
MAX_CLASSES = 100
_PROGRAM = "_sgc_program_"  # begins the names of modules that the command line imports anew
HINT = (
    "on_error=VALUE of @sgc.tool gives the value that the program sees instead; or handle it "
    "there, try: … except Exception:"
)


def class_name(kind: type) -> str:
    """`module:name`; of a file that is run by its path, its stem is the module's name."""
    module = kind.__module__
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is not None and (module == "__main__" or module.startswith(_PROGRAM)):
        module = Path(file).stem
    return f"{module}:{kind.__qualname__}"


def class_names(kind: type[BaseException]) -> tuple[str, ...]:
    """Of a class and those that it is derived from, as far as Exception."""
    found = (class_name(each) for each in kind.__mro__ if each not in (BaseException, object))
    return tuple(found)[:MAX_CLASSES]


@dataclass(frozen=True, slots=True)
class Failed:
    """The value of a tool call that failed, where the program may handle that.

    tool: its name; kind: the name of its exception's class; why: what that says; classes: what
    `class_names` gives; where: the program's line; cause: the exception, if this process has it.
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
        return Failed(tool, kind.__name__, _said(error), class_names(kind), where, error)

    @staticmethod
    def decoded(tool: str, found: Any, where: str) -> Failed:
        """What a log has of it; raises ValueError, TypeError or KeyError where it is malformed."""
        kind, why, classes = found["kind"], found["why"], found["classes"]
        if not isinstance(classes, list) or len(classes) > MAX_CLASSES:
            raise ValueError("the classes of a failure are no list of names")
        if not all(isinstance(each, str) for each in (kind, why, *classes)):
            raise TypeError("a failure is told in texts")
        return Failed(tool, kind, why, tuple(classes), where)

    def encoded(self) -> dict[str, Any]:
        return {"kind": self.kind, "why": self.why, "classes": list(self.classes)}

    @property
    def text(self) -> str:
        return f"{self.kind}: {self.why}"

    def error(self) -> ToolError:
        """What a run ends with that does not handle it."""
        if isinstance(self.cause, ToolError):
            return self.cause
        found = ToolError(
            f"the tool {self.tool!r} failed: {self.text}", where=self.where, hint=HINT
        )
        found.__cause__ = self.cause
        return found


class MadeUp(Exception):
    """What a tool raises that is none, and only stands for one that fails."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.text)
        self.failed = failed


def _said(error: BaseException) -> str:
    """What an exception says, as text that can be written down; its own code may fail."""
    try:
        text = error.message if isinstance(error, ToolError) else str(error)
    except Exception as failure:
        text = f"(its text cannot be made: {type(failure).__name__})"
    return text[:MAX_CHARS].encode("utf-8", "backslashreplace").decode()
