"""Hooks that watch a trace: for methods of marked plain strings, and reads of the surroundings.

The methods of a plain f-string cannot be overridden; a profile hook sees them called as C functions
and stops the trace before their result is used. The hook also sees clocks, random numbers and the
environment; an audit hook sees files, sockets and processes. A compiled program would keep the
values read forever, so these reads are refused, or, if allowed (`ambient.py`), noted.
"""

from __future__ import annotations

import _random
import datetime
import gc
import io
import logging
import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sgc.core.places import IS_OWN, user_loc
from sgc.core.session import current_session
from sgc.core.watching import watching
from sgc.tracing.operators.reading import GUARDED, carries, guarded, refuse
from sgc.tracing.values.abstract import INTERPRET, AbstractText, marked, stop
from sgc.tracing.watch.ambient import current_ambient
from sgc.tracing.watch.call_arguments import takes_abstract
from sgc.tracing.watch.surroundings import (
    ACT_EVENTS,
    ACTS,
    LOOKS,
    READ_EVENTS,
    READS,
    is_of_program,
    looked_at,
)

# Methods that carry markers unchanged. Our own frames may call any method.
_CARRY = {"join", "format", "__format__", "__str__", "encode"}

_CLOCKS = {
    "time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns",
    "process_time", "localtime", "gmtime", "ctime", "asctime",
}  # fmt: skip
_WRITES = ("write", "writelines", "truncate")
_IN_MEMORY = (io.StringIO, io.BytesIO)
_KINDS = {"open": "file", "os.listdir": "folder", "os.scandir": "folder"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_READ_ENVIRONMENT = type(os.environ).__getitem__.__code__
_LOGS = logging.Logger.handle.__code__  # the loggers of programs do not come here
_GUARDING = guarded.__globals__  # the module of GUARDED
_LISTS_ENVIRONMENT = tuple(
    id(getattr(type(os.environ), name).__code__) for name in ("__iter__", "__len__", "__repr__")
)


@contextmanager
def watch(is_waiting: bool = False) -> Iterator[None]:
    """While active on this thread, forbidden reads stop the trace at the user's line.

    is_waiting: watches only from `watch_now` on, since another run has watched the part before.
    """
    _install_audit()
    before = sys.getprofile()
    collects = gc.isenabled()
    gc.disable()  # the collector runs others' finalizers, which may read anything
    if not is_waiting:
        watch_now()
    try:
        yield
    finally:
        watching.on = False
        # A profiler written in C (cProfile) cannot be restored; it ends here.
        sys.setprofile(before if callable(before) else None)
        if collects:
            gc.enable()


def watch_now() -> None:
    """Starts watching, inside `watch`."""
    watching.on = True
    sys.setprofile(_profile)


def _profile(frame: types.FrameType, event: str, arg: Any) -> None:
    names = frame.f_globals
    is_ours = IS_OWN[names.get("__name__", "")]
    if event == "call":
        if is_ours:
            return
        if frame.f_code is _READ_ENVIRONMENT:
            _read_named("reads the environment", "environment", frame.f_locals["key"])
        elif id(frame.f_code) in _LISTS_ENVIRONMENT:
            meet_read("lists the environment")
        elif frame.f_code is _LOGS and is_of_program(frame):
            refuse_act("logs by a library, or by a logger of a class of its own,")
        elif (session := current_session()) is not None:
            session.meet(frame)
    elif event == "c_call":
        receiver = getattr(arg, "__self__", None)
        if isinstance(receiver, str):
            if not is_ours:
                _see_method(frame, arg, receiver)
        elif arg.__name__ in _WRITES and isinstance(receiver, io.IOBase):
            if _is_outside(receiver) and is_of_program(frame):
                refuse_act("writes to a file or the terminal")
        elif not is_ours or (names is _GUARDING and frame.f_code is GUARDED):
            if not carries(arg) and takes_abstract(frame):
                refuse(arg)
            if (what := _reads(frame, arg, receiver)) is not None:
                _read_named(what, *(looked_at(frame) if what == LOOKS else ("", None)))
            elif (what := _acts(frame, arg)) is not None:
                refuse_act(what)


def _see_method(frame: types.FrameType, method: Any, receiver: str) -> None:
    name = method.__name__
    if name in _CARRY:
        return
    if marked(receiver):
        stop(
            f"str.{name} on an f-string around a value known only at run time, which "
            "Python takes for plain text",
            hint=f"build the text with +, which keeps it whole: (x + ' ').{name}(…); or "
            + INTERPRET,
        )
    if isinstance(receiver, AbstractText):
        stop(
            f"str.{name}(x) of a value known only at run time",
            hint=f"write it as a method of the value: x.{name}(…); or " + INTERPRET,
        )
    if takes_abstract(frame):
        stop(
            f"str.{name} of a plain text is given a value known only at run time",
            hint=f"{_INSTEAD.get(name, 'make the receiver the abstract one')}; or " + INTERPRET,
        )


_INSTEAD = {
    "startswith": "write text[:n] == x, or compare x with what you expect",
    "endswith": "write text[-n:] == x, or compare x with what you expect",
    "replace": "write the template as an f-string, with x in its place",
    "strip": "strip the value itself, x.strip(chars)",
}


def _is_outside(file: Any) -> bool:
    """Whether what is written to a file is seen outside of the run."""
    session = current_session()
    is_shown = session is not None and session.shown_on(file) is not None
    return is_shown or not isinstance(file, _IN_MEMORY)


def _reads(frame: types.FrameType, function: Any, receiver: Any) -> str | None:
    """What a C function reads of the surroundings; None if it reads nothing."""
    name, module = function.__name__, getattr(function, "__module__", None)
    if module == "time" and name in _CLOCKS:
        return "reads the clock"
    if name in ("now", "utcnow", "today") and isinstance(receiver, type):
        return "reads the clock" if issubclass(receiver, datetime.date) else None
    if name in ("random", "getrandbits") and isinstance(receiver, _random.Random):
        events = getattr(current_session(), "events", None)
        is_told = events is not None and events.is_seeded(receiver)
        return None if is_told else "draws a random number"
    found = READS.get((module, name))
    return found if found is not None and is_of_program(frame) else None


def _acts(frame: types.FrameType, function: Any) -> str | None:
    """What a C function does that a compiled program would not do; None if nothing."""
    found = ACTS.get((getattr(function, "__module__", None), function.__name__))
    return found if found is not None and is_of_program(frame) else None


def meet_read(what: str, guarded: tuple[str, str] | None = None) -> None:
    """Refuses a read of the surroundings, or notes it if it is allowed."""
    ambient = current_ambient()
    if ambient is None:
        stop(
            f"the program {what} while being traced; a compiled program would keep what it got",
            hint="pass it as an argument of the program; to keep what it gets now, compile it with "
            "--allow-ambient or @sgc.function(allow_ambient=True); or run it with --interpret",
        )
    ambient.note(what, str(user_loc() or ""), guarded)


def refuse_act(what: str) -> None:
    """Stops the trace at what a compiled program would not do."""
    stop(
        f"the program {what} while being traced; a compiled program would not",
        hint="do it outside of the program, or run it with --interpret",
    )


_installed = False


def _install_audit() -> None:
    """Installs the audit hook once per process: it cannot be removed, only be idle."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_audit)


_EVENTS = READ_EVENTS | ACT_EVENTS


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _EVENTS:  # audit events are frequent: each look at a frame is one
        return
    if not getattr(watching, "on", False) or not is_of_program(sys._getframe(1)):
        return
    what = _EVENTS[event]
    if event in _KINDS:
        _see_read(what, _KINDS[event], *arguments)
    elif event in READ_EVENTS:
        meet_read(what)
    else:
        refuse_act(what)


def _see_read(what: str, kind: str, name: Any, mode: Any = None, flags: Any = 0) -> None:
    """Handles a file that is opened or a folder that is listed; refuses opening for writing."""
    if kind == "file" and isinstance(flags, int) and flags & _WRITING:
        refuse_act("opens a file for writing")
    _read_named(what, kind, os.fspath(name) if isinstance(name, os.PathLike) else name)


def _read_named(what: str, kind: str, name: Any) -> None:
    """Handles a read by name; a file may also have a number, and the current folder has no name."""
    if current_ambient() is not None and (marked(name) or isinstance(name, AbstractText)):
        stop(f"the program {what} that is named by a value known only at run time")
    if kind and isinstance(name, (str, bytes)):
        meet_read(what, (kind, os.fsdecode(name)))
    else:
        meet_read(what)
