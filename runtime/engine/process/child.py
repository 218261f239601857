"""Starts child processes of the engine: same interpreter, same `sgc`, safe import path."""

from __future__ import annotations

import sys
from pathlib import Path

import sgc.errors


def python_module(name: str) -> list[str]:
    """The command that runs a module of this copy of the engine; see `start.py`.

    -P keeps the working folder off the import path: it may hold a `proto` or `kernels`.
    """
    start = Path(__file__).absolute().parent.with_name("start.py")
    return [
        sys.executable,
        "-P",
        str(start),
        str(Path(sgc.errors.__file__).absolute().parent),
        name,
    ]
