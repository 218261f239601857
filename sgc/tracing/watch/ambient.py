"""Reads of the surroundings by a program compiled with `--allow-ambient`: held, or guarded.

A program's body runs dozens of times while it is traced and checked. Clocks and random numbers
cannot be read twice and are held: at each line, every run gets the values of the first run. The
environment, files and folders can be read again, and become guards of the graph.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NoReturn

from sgc.core.places import here
from sgc.core.session import current_session
from sgc.core.stops import raise_stop
from sgc.errors import SgcWarning, TraceError
from sgc.ir.graph import Guard

MAX_HELD = 2_000  # readings of clocks and random numbers that are held for one program
MAX_READ = 10_000  # readings of one clock at one line by one run
MAX_FILE_BYTES = 256 * 2**20  # of a file that is guarded by its content
ABSENT = "absent"  # the value of a guard for a thing that did not exist

_KINDS = ("environment", "file", "folder")


class Ambient:
    """The reads of the surroundings by the runs of one program's trace and check."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], Any] = {}
        self._guarded: dict[tuple[str, str], None] = {}
        self._kept: dict[tuple[str, str], None] = {}  # reads that cannot be repeated, by line

    def note(self, what: str, where: str, guarded: tuple[str, str] | None = None) -> None:
        """Records a read of the program. what: as in warnings; where: its line; guarded: the kind
        and name of the thing read."""
        if guarded is None or not _is_unicode(guarded[1]):
            self._kept[where, what] = None
        else:
            self._guarded[guarded] = None

    def held(self, key: tuple[str, int], read: Callable[[], Any]) -> Any:
        """The value that the first run read at this place."""
        if key not in self._held:
            if len(self._held) >= MAX_HELD:
                refuse(f"the program reads clocks or draws at more than {MAX_HELD} places")
            self._held[key] = read()
        return self._held[key]

    def guards(self) -> tuple[Guard, ...]:
        """A guard, with a digest, for each thing read that can be read again."""
        return tuple(
            Guard(kind, name, value)
            for kind, name in sorted(self._guarded)
            if (value := value_of(kind, name)) is not None
        )

    def warn(self) -> None:
        """Warns of each line's reads whose changes no run can notice."""
        unseen = {g for g in self._guarded if value_of(*g) is None}
        kept = [*self._kept, *(("", f"reads the {kind} {name}") for kind, name in sorted(unseen))]
        for where, what in kept:
            place = f"{where}: " if where else ""
            warnings.warn(
                f"{place}the program {what}; compiled, it keeps for ever what it got now",
                SgcWarning,
                stacklevel=2,
            )


def _is_unicode(name: str) -> bool:
    """Whether a name is valid Unicode: names on disk may be any bytes."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


_current: ContextVar[Ambient | None] = ContextVar("sgc_ambient", default=None)


def current_ambient() -> Ambient | None:
    """The reads of the program being compiled; None if reads are not allowed."""
    return _current.get()


@contextmanager
def ambient_allowed(is_allowed: bool) -> Iterator[None]:
    """Inside, traces and checks of one program may read their surroundings, if allowed."""
    if not is_allowed:
        yield
        return
    ambient = Ambient()
    token = _current.set(ambient)
    try:
        yield
    finally:
        _current.reset(token)
    ambient.warn()


def refuse(message: str) -> NoReturn:
    """Raises a TraceError at the program's line; while tracing, the program cannot swallow it."""
    error = TraceError(message, where=here(), hint=_HINT)
    if getattr(current_session(), "is_tracing", False):
        raise_stop(error)
    raise error


_HINT = "pass such values as arguments of the program; or run it with --interpret"


def value_of(kind: str, name: str) -> str | None:
    """A digest of the present content; `absent` if there is none, None if it cannot be read."""
    if kind == "environment":
        value = os.environ.get(name)
        return ABSENT if value is None else _digest(value.encode("utf-8", "surrogateescape"))
    try:
        if kind == "folder":
            return _digest("\0".join(sorted(os.listdir(name))).encode("utf-8", "surrogateescape"))
        return _digest_of_file(name)
    except FileNotFoundError:
        return ABSENT
    except (OSError, ValueError):
        return None


def _digest_of_file(name: str) -> str | None:
    found = os.stat(name)
    if not os.path.isfile(name) or found.st_size > MAX_FILE_BYTES:
        return None  # a pipe or device would not end
    return _digest_of_content(os.path.abspath(name), found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=256)
def _digest_of_content(path: str, mtime_ns: int, size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def changed(guards: Iterable[Guard], is_elsewhere: bool = False) -> list[str]:
    """The things that have changed since a program was compiled, such as `environment HOME`.

    is_elsewhere: whether the program may run on another machine, so that a missing file is not a
    change.
    """
    found = []
    for guard in guards:
        if guard.kind not in _KINDS:
            continue
        now = value_of(guard.kind, guard.name)
        is_missing = is_elsewhere and guard.kind != "environment" and now in (ABSENT, None)
        if now != guard.value and not is_missing:
            found.append(f"{guard.kind} {guard.name}")
    return found


def warn_changed(guards: Iterable[Guard], program: str) -> None:
    """Warns of the things that have changed since a program was compiled."""
    if found := changed(guards, is_elsewhere=True):
        warnings.warn(
            f"{program} was compiled with the {', the '.join(found)} of then, which changed since; "
            "compile it anew to have it take what is there now",
            SgcWarning,
            stacklevel=3,
        )


class AmbientRun:
    """One run of a program's body, which counts its reads of held values."""

    def __init__(self, ambient: Ambient) -> None:
        self.ambient = ambient
        self._read: dict[str, int] = {}

    def clock(self, key: str, read: Callable[[], Any]) -> Any:
        """A reading of a clock, which stands still at each line."""
        if self._count(key) == MAX_READ:
            refuse("the program waits for a clock, which stands still while it is compiled")
        return self.ambient.held((key, 0), read)

    def draw(self, key: str, read: Callable[[], Any]) -> Any:
        """The held value for this draw at a line; each draw of a run has its own."""
        return self.ambient.held((key, self._count(key)), read)

    def _count(self, key: str) -> int:
        self._read[key] = number = self._read.get(key, -1) + 1
        return number
