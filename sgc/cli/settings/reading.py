"""Reads a file of settings, whatever kind of file it is, up to a bound in bytes."""

from __future__ import annotations

from pathlib import Path

from sgc.errors import UsageError

MAX_BYTES = 1 << 20


def read_settings(path: Path, what: str, hint: str = "") -> str:
    """The text of a file or a pipe. what: its name in errors. Raises UsageError for anything
    else."""
    try:
        with path.open("rb") as file:
            found = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{what}: {error.strerror}", hint=hint) from error
    if len(found) > MAX_BYTES:
        raise UsageError(f"{what}: more than {MAX_BYTES:,} bytes", hint=hint)
    try:
        return found.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{what}: not UTF-8 text: {error.reason}", hint=hint) from error
