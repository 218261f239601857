"""A deadline for runs of the user's own code, which may never end without making a request."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_LOOKS_EACH_S = 1.0
WAITING = 6


class Overdue(BaseException):
    """Ends a run that is past its deadline; the program's own handlers do not catch it."""


class Deadline:
    """Ends a run that takes more than `seconds` of its thread's time, or `WAITING` times as many by
    the clock, by raising Overdue in the thread that made this object. Code in C is ended when it
    returns to Python.

    The thread's own time counts, since a busy machine may keep the thread waiting.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self._ident = seconds, threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._ident)
        self._lock, self._is_closed = threading.Lock(), threading.Event()
        self._ends_at: tuple[float, float] | None = None  # of the current run
        self._watch = threading.Thread(target=self._watched, name="sgc-deadline", daemon=True)

    def __enter__(self) -> Deadline:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed.set()
        self._watch.join()

    @contextmanager
    def run(self) -> Iterator[None]:
        """Watches one of several successive runs."""
        own, clock = time.clock_gettime(self._clock), time.monotonic()
        self._ends_at = own + self.seconds, clock + WAITING * self.seconds
        try:
            yield
        finally:
            with self._lock:  # from here on it cannot be raised
                self._ends_at = None

    def _watched(self) -> None:
        while not self._is_closed.wait(min(_LOOKS_EACH_S, self.seconds)):
            with self._lock:
                if self._ends_at is not None and self._is_over(*self._ends_at):
                    self._ends_at = None
                    _raise_in(self._ident)

    def _is_over(self, own: float, clock: float) -> bool:
        return time.clock_gettime(self._clock) > own or time.monotonic() > clock


def _raise_in(ident: int) -> None:
    thread, error = ctypes.c_ulong(ident), ctypes.py_object(Overdue)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error)
