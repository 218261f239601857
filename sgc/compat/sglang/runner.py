"""Runs a script that imports sglang, unmodified, as `python SCRIPT` would."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from sgc.compat.sglang.importing import install
from sgc.endpoints import Endpoint, set_default_backend
from sgc.errors import SgcError, UsageError


def run_script(path: str, arguments: Sequence[str] = (), backend: Endpoint | None = None) -> None:
    """Runs a script as `__main__` with a command line of its own, on `backend` by default.

    Whatever the script raises comes out, SystemExit too. The process is the script's: its
    `sys.argv` and `sys.path` stay.
    """
    source = Path(path)
    if source.suffix == ".sgir":
        raise UsageError(f"{path}: expected a Python script, found a compiled program")
    if not source.is_file():
        raise SgcError(f"{path}: no such file")
    install()
    if backend is not None:
        set_default_backend(backend)
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(source.resolve().parent))
    runpy.run_path(path, run_name="__main__")
