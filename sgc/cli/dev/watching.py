"""The Python files that a program may consist of, and whether they have changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

MAX_FILES = 2_000
MAX_FOLDERS = 500
_LEFT_OUT = {"__pycache__", "node_modules", "site-packages"}

Stamps = dict[str, tuple[int, int]]


def stamps(folder: Path) -> Stamps:
    """The modification time and size of each Python file below a folder. Reads at most MAX_FILES
    files in MAX_FOLDERS folders, as a program may be in a home folder.
    """
    found: Stamps = {}
    for path in _files(folder):
        try:
            status = path.stat()
        except OSError:
            continue  # an editor is replacing it
        found[str(path)] = (status.st_mtime_ns, status.st_size)
        if len(found) >= MAX_FILES:
            break
    return found


def _files(folder: Path) -> Iterator[Path]:
    for at, folders, files in islice(os.walk(folder), MAX_FOLDERS):
        folders[:] = sorted(each for each in folders if each[0] != "." and each not in _LEFT_OUT)
        yield from (Path(at) / name for name in sorted(files) if name.endswith(".py"))
