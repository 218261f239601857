"""A streamed reply of SGLang's API: server-sent events, out of chunks that end anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sgc.errors import BackendError
from sgc.runtime.executor.backend import Delta
from sgc.runtime.executor.sglang_wire import Json, error_of, parsed, replies_of


class Shown:
    """Passes on the text of a stream as it grows; what was shown is never taken back."""

    def __init__(self, on_delta: Callable[[str], None]) -> None:
        self._on_delta = on_delta
        self.n_shown = 0

    def update(self, text: str, meta: Json) -> None:
        delta = text[self.n_shown :]
        if delta:
            self.n_shown += len(delta)
            self._on_delta(Delta(delta, meta))


class Events:
    """Server-sent events out of chunks that end anywhere; each tells all that came so far."""

    def __init__(self, shown: Shown, max_bytes: int) -> None:
        self._shown = shown
        self._max_bytes = max_bytes
        self._rest = bytearray()
        self._last: Any = None
        self.is_done = False

    def feed(self, chunk: bytes) -> None:
        self._rest += chunk
        if b"\n" not in chunk:
            if len(self._rest) > self._max_bytes:
                raise BackendError(f"the server sent an event of over {self._max_bytes} bytes")
            return
        *lines, rest = self._rest.split(b"\n")
        self._rest = rest
        for line in lines:
            if line.startswith(b"data:") and not self.is_done:
                self._event(line[5:].strip())

    def _event(self, data: bytes | bytearray) -> None:
        if data == b"[DONE]":
            self.is_done = True
            return
        event = parsed(data, "an event of the server's stream")
        if isinstance(event, dict) and "error" in event:
            raise error_of(event, "the server failed the request")
        (self._last,) = replies_of(event, 1)
        text = self._last.get("text")
        if isinstance(text, str):
            self._shown.update(text, self._last["meta_info"])

    def result(self) -> Json | None:
        """The whole reply; None if the stream ended too early."""
        if self._last is None:
            return None
        is_finished = self._last["meta_info"].get("finish_reason") is not None
        reply: Json = self._last
        return reply if self.is_done or is_finished else None
