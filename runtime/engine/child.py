"""How child processes of the engine are started: same interpreter, safe import path."""

from __future__ import annotations

import json
import os
import site
import sys
from importlib import metadata
from pathlib import Path

import sgc.errors


def python_module(name: str) -> list[str]:
    """The command that runs a module with this interpreter.

    -P keeps the working folder off the import path: it may hold a `proto` or `kernels`.
    """
    return [sys.executable, "-P", "-m", name]


def environment() -> dict[str, str]:
    """This process's environment, in which the child finds the same `sgc`."""
    root = Path(sgc.errors.__file__).absolute().parent.parent
    if is_installed(root):
        return dict(os.environ)
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [str(root), *(entry for entry in entries if entry and entry != str(root))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def is_installed(root: Path) -> bool:
    """Whether this interpreter finds the `sgc` in folder `root` without being told.

    Otherwise `root` must go on the import path, with all else that lies in it.
    """
    folders = [*site.getsitepackages(), site.getusersitepackages()]
    if any(root == Path(folder) for folder in folders):
        return True
    origins = (
        found.read_text("direct_url.json")
        for found in metadata.distributions(name="sgc", path=folders)
    )
    return any(text and json.loads(text).get("url") == root.as_uri() for text in origins)
