"""Reads a request's body as JSON, bounded in bytes, time, depth and values.

A slow client cannot use up what others need: a body must arrive at a minimum rate, and the memory
of all unfinished bodies is bounded by giving up the oldest one.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from aiohttp import web

from sgc.runtime.engine.http.calls.call_fields import take_fields
from sgc.runtime.engine.http.calls.guard import CALLER
from sgc.runtime.engine.http.connections import Connections
from sgc.runtime.engine.http.errors import HttpError, Json, bad
from sgc.runtime.engine.preparing.bounds import MAX_MESSAGE_BYTES
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.lanes import Lane
from sgc.runtime.engine.text import strict_json

MAX_DEPTH = 64
MAX_VALUES = 256 * 1024  # no other request is served while they are parsed
READ_TIMEOUT_S = 30.0
GRACE_S = 10.0  # after this, a body must arrive at the minimum rate
PACE_BYTES_PER_S = 32 * 1024
MAX_READING_BYTES = 256 * 1024 * 1024  # of all unfinished bodies
INLINE_BYTES = 64 * 1024  # more than this is parsed on a thread
_SLICE_BYTES = 256 * 1024
_MARKS = (b",", b":", b"[", b"{")  # every value but the first follows one of these


@dataclass(slots=True, eq=False)
class _Reading:
    """An unfinished body."""

    chunks: list[bytes] = field(default_factory=list)
    n_bytes: int = 0
    n_unquoted: int = 0  # bytes since the last quote: an upper bound on the string being read
    deadline: asyncio.Timeout | None = None
    is_given_up: bool = False

    def add(self, chunk: bytes) -> None:
        self.chunks.append(chunk)
        self.n_bytes += len(chunk)
        last = chunk.rfind(b'"')
        self.n_unquoted = self.n_unquoted + len(chunk) if last < 0 else len(chunk) - last - 1

    def joined(self) -> bytes:
        """The body as one string of bytes; frees its chunks."""
        whole = b"".join(self.chunks)
        self.chunks.clear()
        return whole


class BodyReader:
    """Reads request bodies. max_string_bytes: of one JSON string, if prompts have a bound."""

    def __init__(
        self,
        connections: Connections,
        max_reading_bytes: int = MAX_READING_BYTES,
        max_string_bytes: int | None = None,
    ) -> None:
        self._connections = connections
        self._most_in_string = MAX_MESSAGE_BYTES if max_string_bytes is None else max_string_bytes
        self._most = max_reading_bytes
        self._n_bytes = 0
        self._reading: dict[_Reading, None] = {}  # oldest first
        self._lane = Lane("json")

    async def read(self, request: web.Request) -> Json:
        """The body as a JSON object; raises HttpError 400, 408, 413, 415 or 503.

        A string that is too long for any prompt is refused while it arrives, before it is parsed.
        """
        body = await self.parse(request, await self.read_bytes(request))
        take_fields(body, request.get(CALLER) or Caller(), request.path)
        return body

    async def read_bytes(self, request: web.Request) -> bytes:
        """The body as it came; raises HttpError 408, 413, 415 or 503."""
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise HttpError(415, "compressed bodies are not supported; send it uncompressed")
        length = request.content_length
        if length is not None and length > MAX_MESSAGE_BYTES:
            raise too_large()
        with self._connections.receiving(request):
            return (await self._received(request)).joined()

    async def parse(self, request: web.Request, data: bytes) -> Json:
        """The JSON object that a body is; raises HttpError 400."""
        if len(data) <= INLINE_BYTES:
            return parsed(data)
        return await self._lane.run(request.protocol, lambda _: parsed(data))

    async def _received(self, request: web.Request) -> _Reading:
        reading = _Reading()
        self._reading[reading] = None
        start_s = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(_allowed_s(0)) as reading.deadline:
                while chunk := await request.content.readany():
                    reading.add(chunk)
                    self._n_bytes += len(chunk)
                    if reading.n_bytes > MAX_MESSAGE_BYTES:
                        raise too_large()
                    if reading.n_unquoted > self._most_in_string:
                        raise _too_long(self._most_in_string)
                    if not reading.is_given_up:
                        reading.deadline.reschedule(start_s + _allowed_s(reading.n_bytes))
                    self._make_room()
        except TimeoutError as error:
            if reading.is_given_up:
                raise HttpError(
                    503, "too many request bodies at once; try again", code="overloaded"
                ) from error
            slow = f"in {READ_TIMEOUT_S:g} s, nor at {PACE_BYTES_PER_S} bytes a second"
            raise HttpError(408, f"the body did not come {slow}") from error
        finally:
            del self._reading[reading]
            self._n_bytes -= reading.n_bytes
        return reading

    def _make_room(self) -> None:
        if self._n_bytes <= self._most:
            return
        slowest = next((each for each in self._reading if not each.is_given_up), None)
        if slowest is not None and slowest.deadline is not None:
            slowest.is_given_up = True
            slowest.deadline.reschedule(0)


def _allowed_s(n_bytes: int) -> float:
    """The time in which `n_bytes` must have arrived, with some slack."""
    return min(READ_TIMEOUT_S, GRACE_S + n_bytes / PACE_BYTES_PER_S)


def too_large() -> HttpError:
    return HttpError(413, f"the body may have {MAX_MESSAGE_BYTES} bytes", code="body_too_large")


def _too_long(most: int) -> HttpError:
    message = f"a string of more than {most} bytes is longer than any prompt that fits this engine"
    return HttpError(413, message, code="context_length_exceeded")


def parsed(data: bytes) -> Json:
    """The JSON object of a body; raises HttpError."""
    if has_marks(data, MAX_VALUES) and n_values(data, MAX_VALUES) > MAX_VALUES:
        message = f"the body may have {MAX_VALUES} values; ask for fewer at a time"
        raise HttpError(413, message, code="body_too_large")
    try:
        found = strict_json.load(data.decode())
    except RecursionError as error:
        raise _too_deep() from error
    except strict_json.RepeatedNameError as error:
        raise bad(f"the body: {error}", error.name, "invalid_json") from error
    except ValueError as error:
        raise bad(f"the body is not JSON: {error}", code="invalid_json") from error
    if not isinstance(found, dict):
        raise bad("the body must be a JSON object", code="invalid_json")
    _check(found)
    return found


def has_marks(data: bytes, most: int) -> bool:
    """Whether the body may have more than `most` values, marks inside strings counted. numpy
    releases the GIL while it compares, and counting stops as soon as possible."""
    n, codes = 0, np.frombuffer(data, np.uint8)
    for start in range(0, len(codes), _SLICE_BYTES):
        piece = codes[start : start + _SLICE_BYTES]
        n += sum(int(np.count_nonzero(piece == mark[0])) for mark in _MARKS)
        if n > most:
            return True
    return False


def n_values(data: bytes, most: float = math.inf) -> int:
    """An upper bound on the values and names in the JSON: its commas, colons and opening brackets
    outside strings. It counts in slices, so that other threads can run, and stops above `most`."""
    n, quotes, is_escaped = 1, 0, False
    for start in range(0, len(data), _SLICE_BYTES):
        piece = data[start : start + _SLICE_BYTES]
        if is_escaped:
            piece = piece[1:]
        bare = piece.replace(b"\\\\", b"")
        is_escaped = bare.endswith(b"\\")
        between = bare.replace(b'\\"', b"").split(b'"')
        outside = between[quotes % 2 :: 2]
        n += sum(part.count(mark) for part in outside for mark in _MARKS)
        quotes += len(between) - 1
        if n > most:
            break
    return n


def _check(found: Json) -> None:
    """Checks the depth, level by level, and that every string can be encoded as UTF-8."""
    level: list[Any] = [found]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += value.keys()
                below += value.values()
            elif isinstance(value, list):
                below += value
            elif isinstance(value, str) and not value.isascii():
                _check_text(value)
        if not below:
            return
        level = below
    raise _too_deep()


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = text[error.start]
        raise bad(f"a text holds a lone surrogate ({found!r}), which is no character") from error


def _too_deep() -> HttpError:
    return bad(f"the body is nested more than {MAX_DEPTH} levels deep", code="invalid_json")
