"""Captures what a program shows while it is only checked, on the thread that runs it.

A class's methods run as they are, over Python's own names, so what they print and log is taken
where it arrives: at the standard streams and at the loggers. Other threads print and log as ever.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from sgc.runtime.executor.interface.tools import Shown
from sgc.tracing.operators.calls import STANDING
from sgc.tracing.overlays.showing import ShowingStream

Sink = Callable[[Shown], object]

_sinks: dict[int, Sink] = {}  # by the thread that runs a checked program
_lock = threading.Lock()  # of what follows
_n_checks = 0
_streams: dict[str, _Stream] = {}
_handle = logging.Logger.handle
_OF_RUNS = ("asyncio", "sgc")  # whose loggers are no program's


class _Stream:
    """Stands for a standard stream while programs are checked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stood_for = getattr(sys, name)

    def write(self, text: str) -> Any:
        sink = _sinks.get(threading.get_ident())
        if sink is None:
            return self.stood_for.write(text)
        sink(Shown(text, self.name))
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        for each in texts:
            self.write(each)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stood_for, name)


STANDING[_Stream] = ShowingStream  # of another thread's check, in a trace


def _take(logger: logging.Logger, record: logging.LogRecord) -> None:
    """In place of `Logger.handle`."""
    sink = _sinks.get(threading.get_ident())
    if sink is None or logger.name.partition(".")[0] in _OF_RUNS:
        _handle(logger, record)
    else:
        sink(Shown(record.getMessage(), "log", logger.name, record.levelno))


@contextmanager
def capturing() -> Iterator[None]:
    """Inside, `shown_to` may be used. Several threads may check programs at once."""
    global _n_checks
    with _lock:
        _n_checks += 1
        if _n_checks == 1:
            for name in ("stdout", "stderr"):
                if getattr(sys, name) is not None:
                    _streams[name] = stream = _Stream(name)
                    setattr(sys, name, stream)
            logging.Logger.handle = _take  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        with _lock:
            _n_checks -= 1
            if _n_checks == 0:
                for name, stream in _streams.items():
                    if getattr(sys, name) is stream:  # nobody has replaced it meanwhile
                        setattr(sys, name, stream.stood_for)
                _streams.clear()
                logging.Logger.handle = _handle  # type: ignore[method-assign]


@contextmanager
def shown_to(sink: Sink) -> Iterator[None]:
    """Inside, what this thread prints and logs is given to `sink`."""
    _sinks[threading.get_ident()] = sink
    try:
        yield
    finally:
        del _sinks[threading.get_ident()]
