"""The log of `sgc run`: `--log` begins one, `--resume` continues one."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from sgc.errors import UsageError
from sgc.runs.rows.spool import Spool
from sgc.runtime.executor.log.file import Watch
from sgc.runtime.executor.log.run_log import RunLog


@dataclass(frozen=True, slots=True)
class LogAsked:
    """The options of a log."""

    log: Path | None = None
    resume: Path | None = None
    retry_effect: bool = False
    skip_effect: bool = False

    @property
    def path(self) -> Path | None:
        return self.log or self.resume

    @property
    def spool(self) -> Spool | None:
        """Where rows that can be read only once are kept."""
        if self.path is None:
            return None
        is_new = not (self.path.exists() and self.path.stat().st_size)
        return Spool(self.path.with_name(self.path.name + ".rows"), is_new)


def open_log(asked: LogAsked, watch: Watch | None = None) -> RunLog | None:
    """Opens the run's log; None if it has none. `--resume` may also begin one. watch: is passed the
    log's records."""
    log, resume = asked.log, asked.resume
    if log is not None and resume is not None:
        raise UsageError("--log begins a log, and --resume goes on with one; give one of them")
    if asked.retry_effect and asked.skip_effect:
        raise UsageError("--retry-effect and --skip-effect exclude each other")
    if (asked.retry_effect or asked.skip_effect) and resume is None:
        raise UsageError("--retry-effect and --skip-effect are for a run that goes on: --resume")
    if log is not None and log.exists() and log.stat().st_size:
        raise UsageError(f"--log {log}: there is one already", hint=f"to go on: --resume {log}")
    if asked.path is None:
        return None
    check_place(asked.path)
    how = "retry" if asked.retry_effect else "skip" if asked.skip_effect else "stop"
    return RunLog.open(asked.path, how, watch)


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
