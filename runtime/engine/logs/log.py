"""The lines that a server writes: as plain text, or one JSON object a line.

In JSON, everything is an object: also lines that other modules log, or the step process writes.
Characters that could end a line or deceive a terminal are escaped in both forms. While a server
serves, lines wait in a bounded queue for a thread that writes them, since their reader may stall or
be gone.
"""

from __future__ import annotations

import json
import logging
import queue
import re
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

PLAIN, JSON = "plain", "json"
FORMATS = (PLAIN, JSON)
MAX_LINE_CHARS = 8192  # of another process's line
MAX_WAITING = 4096  # lines
CLOSE_S = 1.0  # how long writing the last lines may take
_SIMPLE = re.compile(r"[A-Za-z0-9._:/+=@,-]+")


class Log:
    """Writes to standard error. form: one of `FORMATS`."""

    def __init__(self, form: str = PLAIN, stream: IO[str] | None = None) -> None:
        self.is_json = form == JSON
        self._stream = stream
        self._waiting: queue.Queue[str | None] | None = None
        self._writer: threading.Thread | None = None
        self._n_dropped = 0

    def start(self) -> None:
        """From now on lines are written by a thread of their own, until `close`."""
        self._waiting = queue.Queue(MAX_WAITING)
        self._writer = threading.Thread(target=self._write_all, args=[self._waiting], daemon=True)
        self._writer.start()

    def close(self) -> None:
        """Waits until the last lines are written, for `CLOSE_S` at most."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and self._writer is not None:
            with suppress(queue.Full):
                waiting.put(None, timeout=CLOSE_S)
                self._writer.join(CLOSE_S)

    def tell(self, event: str, message: str, level: str = "info", **fields: Any) -> None:
        """A line for people; its fields are for programs, and only in JSON."""
        if self.is_json:
            self._write(_json(event, level, {**fields, "message": message}))
        else:
            self._write(message)

    def record(self, event: str, fields: Mapping[str, Any]) -> None:
        """A line of names and values; those that are None are left out."""
        given = {name: value for name, value in fields.items() if value is not None}
        if self.is_json:
            self._write(_json(event, "info", given))
        else:
            pairs = (f"{name}={_plain(value)}" for name, value in given.items())
            self._write(f"{_now()} {event} {' '.join(pairs)}")

    def take_over(self) -> None:
        """In JSON: from now on, other modules' log records and warnings come here too."""
        if self.is_json:
            logging.captureWarnings(True)
            logging.getLogger().addHandler(_Handler(self))

    def follow(self, stream: IO[bytes]) -> None:
        """Logs each line that another process writes, on a thread of its own."""

        def read() -> None:
            while line := stream.readline(MAX_LINE_CHARS):
                if text := line.decode(errors="replace").strip():
                    self.tell("worker", text)

        threading.Thread(target=read, daemon=True).start()

    def _write(self, line: str) -> None:
        if self._waiting is None:
            self._put(line)
            return
        try:
            self._waiting.put_nowait(line)
        except queue.Full:
            self._n_dropped += 1

    def _write_all(self, waiting: queue.Queue[str | None]) -> None:
        while (line := waiting.get()) is not None:
            self._put(line)
            if self._n_dropped and waiting.empty():
                n, self._n_dropped = self._n_dropped, 0
                self.tell("dropped", f"{n} lines of this log were dropped: they were not read")

    def _put(self, line: str) -> None:
        """Writes a line; errors are ignored, since a broken log must not fail a request."""
        stream = self._stream or sys.stderr
        with suppress(OSError, ValueError):
            stream.write(line + "\n")  # in one piece, as threads write too
            stream.flush()


class _Handler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._traceback = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._tell(record)
        except Exception:  # as `logging` handles a message that does not fit its arguments
            self.handleError(record)

    def _tell(self, record: logging.LogRecord) -> None:
        fields = {"logger": record.name}
        if record.exc_info:
            fields["traceback"] = self._traceback.formatException(record.exc_info)
        self._log.tell("log", record.getMessage(), record.levelname.lower(), **fields)


def _json(event: str, level: str, fields: Mapping[str, Any]) -> str:
    """ASCII only, so that no text contains what some reader takes for a line end."""
    return json.dumps({"time": _now(), "level": level, "event": event, **fields})


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value if _SIMPLE.fullmatch(value) else json.dumps(value)
    return json.dumps(value)


def _now() -> str:
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"
