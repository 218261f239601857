"""The log of `sgc run`: `--log` begins one, `--resume` continues one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from sgc.errors import UsageError
from sgc.runtime.executor.log.file import Watch
from sgc.runtime.executor.log.run_log import RunLog


def open_log(
    log: Path | None,
    resume: Path | None,
    retry_effect: bool,
    skip_effect: bool,
    watch: Watch | None = None,
) -> RunLog | None:
    """Opens the run's log; None if it has none. `--resume` may also begin one. watch: is passed the
    log's records."""
    if log is not None and resume is not None:
        raise UsageError("--log begins a log, and --resume goes on with one; give one of them")
    if retry_effect and skip_effect:
        raise UsageError("--retry-effect and --skip-effect exclude each other")
    if (retry_effect or skip_effect) and resume is None:
        raise UsageError("--retry-effect and --skip-effect are for a run that goes on: --resume")
    if log is not None and log.exists() and log.stat().st_size:
        raise UsageError(f"--log {log}: there is one already", hint=f"to go on: --resume {log}")
    path = log or resume
    if path is None:
        return None
    check_place(path)
    how = "retry" if retry_effect else "skip" if skip_effect else "stop"
    return RunLog.open(path, how, watch)


def check_place(path: Path) -> None:
    """Raises UsageError if there can be no log at the path. Links are followed."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        _check_new(path)
        return
    except OSError as error:
        raise UsageError(f"the log {path}: {error.strerror}", hint="name another file") from error
    if stat.S_ISDIR(mode):
        raise UsageError(f"the log {path} is a folder", hint="name a file")
    if not os.access(path, os.R_OK | os.W_OK):
        raise UsageError(
            f"the log {path} may not be read and written", hint="change its mode, or name another"
        )


def _check_new(path: Path) -> None:
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise UsageError(f"the log {path}: there is no folder {folder}", hint="make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"the log {path}: nothing can be written in the folder {folder}")
