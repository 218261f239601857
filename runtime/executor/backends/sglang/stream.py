"""Reads a streamed reply of SGLang's API: server-sent events in chunks that end anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sgc.errors import BackendError
from sgc.runtime.executor.backends.sglang.wire import Json, error_of, parsed, replies_of
from sgc.runtime.executor.backends.stops import n_begun
from sgc.runtime.executor.interface.backend import Delta


class Shown:
    """Passes on the text of a stream as it grows; shown text is never taken back.

    So text that a server may take back is held until more text or the end decides: the beginning of
    a stop string, and incomplete characters.
    """

    def __init__(self, on_delta: Callable[[str], None], stop: tuple[str, ...] = ()) -> None:
        self._on_delta = on_delta
        self._stop = stop
        self._text = ""

    @property
    def n_shown(self) -> int:
        return len(self._text)

    def update(self, text: str, meta: Json) -> None:
        """Passes on what is new and settled in the whole text so far."""
        settled = self._settled(text)
        if settled.startswith(self._text):  # else `finish` raises the error
            self._show(settled, meta)

    def finish(self, text: str, meta: Json) -> None:
        """Passes on the rest of the final text; raises BackendError if shown text has changed."""
        if not text.startswith(self._text):
            raise BackendError(
                f"the server took back text that it had streamed: {self._text[-60:]!r} is no more "
                f"in the final {text[-60:]!r}",
                hint="run it without stream=True",
            )
        self._show(text, meta)

    def _show(self, text: str, meta: Json) -> None:
        delta, self._text = text[len(self._text) :], text
        if delta:
            self._on_delta(Delta(delta, meta))

    def _settled(self, text: str) -> str:
        """The text without a tail that the server may take back."""
        text = text.rstrip("\ufffd")
        return text[: len(text) - n_begun(text, self._stop)]


class Events:
    """Parses server-sent events in chunks that end anywhere; each has the whole text so far."""

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
        text, meta = self._last.get("text"), self._last["meta_info"]
        is_final = meta.get("finish_reason") is not None  # left to `Shown.finish`
        if isinstance(text, str) and not is_final:
            self._shown.update(text, meta)

    def result(self) -> Json | None:
        """The whole reply; None if the stream ended too early."""
        if self._last is None:
            return None
        is_finished = self._last["meta_info"].get("finish_reason") is not None
        reply: Json = self._last
        return reply if self.is_done or is_finished else None
