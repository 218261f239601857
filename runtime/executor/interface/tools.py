"""The host's side of a run: the tools that a caller allows, and what a program shows to people."""

from __future__ import annotations

import builtins
import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sgc.ir.graph import Node

PURE = "pure"
EFFECTS = (PURE, "idempotent", "effect")


@dataclass(frozen=True, slots=True)
class ToolImpl:
    """The Python function of a tool's name. effect: None accepts what the program says."""

    name: str
    signature: str
    call: Callable[..., Any]
    is_async: bool = False
    effect: str | None = None


class ToolSource(Protocol):
    """The tools that a caller allows."""

    def find(self, node: Node) -> ToolImpl | None:
        """The tool that a call names; None if it is not allowed."""
        ...


@dataclass(frozen=True, slots=True)
class AllowedTools:
    """Tools by name."""

    by_name: Mapping[str, ToolImpl]

    def find(self, node: Node) -> ToolImpl | None:
        return self.by_name.get(node.text("name"))


MAX_FILES, MAX_MET = 1_000, 10_000
_met = dict[str, dict[Any, int]]()  # the warnings shown of each file, which come once


@dataclass(frozen=True, slots=True)
class Shown:
    """to: `stdout`, `stderr`, `log` or `warnings`. name: of the logger, empty for the functions of
    `logging` itself, or of the warning's class. level: of a line of a log. file, line, function:
    where the program shows it.
    """

    text: str
    to: str
    name: str = ""
    level: int = 0
    file: str = ""
    line: int = 0
    function: str = ""

    def write(self) -> None:
        """Shows it as Python would."""
        if self.to == "log":
            self._log()
        elif self.to == "warnings":
            kind = warning_class(self.name) or UserWarning
            if len(_met) > MAX_FILES:
                _met.clear()
            seen = _met.setdefault(self.file, {})
            if len(seen) > MAX_MET:
                seen.clear()
            warnings.warn_explicit(self.text, kind, self.file, self.line, self._module, seen)
        elif (stream := getattr(sys, self.to)) is not None:  # None: the process has no terminal
            stream.write(self.text)

    @property
    def _module(self) -> str:
        """The name of the module, by which filters know it."""
        script = getattr(sys.modules.get("__main__"), "__file__", None) or ""
        is_script = os.path.basename(script) == self.file
        return "__main__" if is_script else self.file.removesuffix(".py")

    def _log(self) -> None:
        logger = logging.getLogger(self.name or None)
        if not self.name and not logger.handlers:
            logging.basicConfig()  # as `logging.info` and the like do
        if logger.isEnabledFor(self.level):
            said = self.text, (), None, self.function
            logger.handle(logger.makeRecord(logger.name, self.level, self.file, self.line, *said))


def warning_class(name: str) -> type[Warning] | None:
    """One of Python's own classes of warnings, by its name."""
    kind = getattr(builtins, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, Warning) else None


def unshown(_: Shown) -> None:
    """Takes what a program shows in a run that nobody watches."""
