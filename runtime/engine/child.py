"""How child processes of the engine are started: same interpreter, safe import path."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import sgc.errors


def python_module(name: str) -> list[str]:
    """The command that runs a module with this interpreter.

    -P keeps the working folder off the import path: it may hold a `proto` or `kernels`.
    """
    return [sys.executable, "-P", "-m", name]


def environment() -> dict[str, str]:
    """This process's environment, in which the child finds the same `sgc`."""
    root = str(Path(sgc.errors.__file__).absolute().parent.parent)
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [root, *(entry for entry in entries if entry and entry != root)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
