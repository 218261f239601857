"""Text as it is generated: a log that a run writes, followed by any number of readers.

Readers may be threads or coroutines of any loop. The log holds each piece of text once; a reader
stores only its position.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, NamedTuple

from sgc.ir.graph import Node


class StreamedText(NamedTuple):
    """A piece of a variable's text. stream: the path of the stream among calls and forks."""

    text: str
    name: str
    stream: str


class TextLog:
    """The text that a run has shown. A piece without text ends its variable's text."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: list[StreamedText] = []
        self._wakers: list[Callable[[], object]] = []
        self._is_closed = False
        self.error: BaseException | None = None

    def add(self, node: Node, path: str, text: str) -> None:
        """Appends a piece; called by the run, in order."""
        is_named = any(key == "name" for key, _ in node.fields)
        name = node.text("name") if is_named else ""
        with self._lock:
            self._shown.append(StreamedText(text, name, path))
            wakers = list(self._wakers)
        for wake in wakers:
            wake()

    def close(self, error: BaseException | None) -> None:
        """Ends the log: no more text will come. Only the first call counts."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed, self.error = True, error
            wakers = list(self._wakers)
        for wake in wakers:
            wake()

    def since(self, n: int) -> tuple[list[StreamedText], bool]:
        """The pieces after the first n, and whether they are the last."""
        with self._lock:
            return self._shown[n:], self._is_closed

    def subscribe(self, wake: Callable[[], object]) -> None:
        with self._lock:
            self._wakers.append(wake)

    def unsubscribe(self, wake: Callable[[], object]) -> None:
        with self._lock:
            self._wakers.remove(wake)


class Reader:
    """Reads part of a log: all text of one stream, or of one or several variables."""

    def __init__(self, log: TextLog, path: str, names: str | Sequence[str] | None) -> None:
        self.log = log
        self._path = path
        self._names = names
        self._n = 0
        self.is_over = False
        self.n_found = 0

    def read(self) -> list[Any]:
        """Returns the new pieces since the last call; sets `is_over` if they are the last."""
        shown, is_closed = self.log.since(self._n)
        self._n += len(shown)
        found = []
        for piece in shown:
            if self.is_over or not self._is_wanted(piece):
                continue
            self.n_found += 1
            if piece.text:
                found.append(piece if self._is_many else piece.text)
            elif isinstance(self._names, str):
                self.is_over = True
        self.is_over = self.is_over or is_closed
        return found

    @property
    def _is_many(self) -> bool:
        return self._names is not None and not isinstance(self._names, str)

    def _is_wanted(self, piece: StreamedText) -> bool:
        if self._names is None:
            return piece.stream == self._path
        if isinstance(self._names, str):
            return piece.stream == self._path and piece.name == self._names
        is_inside = piece.stream == self._path or piece.stream.startswith(self._path + "/")
        return is_inside and piece.name in self._names


def follow(reader: Reader) -> Iterator[Any]:
    """Yields a reader's pieces as they come; raises the error that ended the run if one did."""
    has_more = threading.Event()
    reader.log.subscribe(has_more.set)
    try:
        while True:
            has_more.clear()
            yield from reader.read()
            if reader.is_over:
                break
            has_more.wait()
    finally:
        reader.log.unsubscribe(has_more.set)
    if reader.log.error is not None:
        raise reader.log.error


async def follow_async(reader: Reader) -> AsyncIterator[Any]:
    """The same for coroutines."""
    loop = asyncio.get_running_loop()
    has_more = asyncio.Event()

    def wake() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(has_more.set)

    reader.log.subscribe(wake)
    try:
        while True:
            has_more.clear()
            for found in reader.read():
                yield found
            if reader.is_over:
                break
            await has_more.wait()
    finally:
        reader.log.unsubscribe(wake)
    if reader.log.error is not None:
        raise reader.log.error
