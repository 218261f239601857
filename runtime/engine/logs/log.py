"""The lines that a server writes: as plain text, or one JSON object a line.

In JSON everything is: what other modules log, and what the step process writes. Characters that
could end a line or deceive a terminal are escaped in both forms.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

PLAIN, JSON = "plain", "json"
FORMATS = (PLAIN, JSON)
MAX_LINE_CHARS = 8192  # of another process's line
_SIMPLE = re.compile(r"[A-Za-z0-9._:/+=@,-]+")


class Log:
    """Writes to standard error. form: one of `FORMATS`."""

    def __init__(self, form: str = PLAIN, stream: IO[str] | None = None) -> None:
        self.is_json = form == JSON
        self._stream = stream

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
        """In JSON: from now on what modules log and warn of comes here too."""
        if self.is_json:
            logging.captureWarnings(True)
            logging.getLogger().addHandler(_Handler(self))

    def follow(self, stream: IO[bytes]) -> None:
        """Tells each line that another process writes, on a thread of its own."""

        def read() -> None:
            while line := stream.readline(MAX_LINE_CHARS):
                if text := line.decode(errors="replace").strip():
                    self.tell("worker", text)

        threading.Thread(target=read, daemon=True).start()

    def _write(self, line: str) -> None:
        stream = self._stream or sys.stderr
        stream.write(line + "\n")  # in one piece, as threads write too
        stream.flush()


class _Handler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._traceback = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        fields = {"logger": record.name}
        if record.exc_info:
            fields["traceback"] = self._traceback.formatException(record.exc_info)
        self._log.tell("log", record.getMessage(), record.levelname.lower(), **fields)


def _json(event: str, level: str, fields: Mapping[str, Any]) -> str:
    """ASCII alone, so that no text ends a line, in whatever a reader takes for one."""
    return json.dumps({"time": _now(), "level": level, "event": event, **fields})


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value if _SIMPLE.fullmatch(value) else json.dumps(value)
    return json.dumps(value)


def _now() -> str:
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"
