"""A client's stream of frames, answered by an engine or by a router of several engines."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping

import grpc
import grpc.aio

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.server.message_check import Malformed
from sgc.runtime.engine.server.outbox import Outbox

_log = logging.getLogger("sgc.engine")


class FrameStream(ABC):
    """Requests in, replies out, many of each in a frame. `served` runs it. failed: why no more of
    its requests can be answered, if a fault of the server's own ends it."""

    def __init__(self) -> None:
        self.silent_since = time.monotonic()
        self.ended_because = ""
        self.malformed = self.failed = ""
        self._active: Mapping[int, object] = {}
        self._outbox = Outbox()
        self._has_output, self._has_room = asyncio.Event(), asyncio.Event()
        self._is_input_over = False

    @property
    def is_silent(self) -> bool:
        """Whether no request is unfinished and no reply unsent."""
        return not self._active and not self._outbox

    async def read(self, frames: AsyncIterator[pb.ClientFrame]) -> None:
        """Reads frames until the client closes its side, or sends something else (`malformed`)."""
        try:
            async for frame in frames:
                self._take(frame)
                del frame  # it may be large, and the next may come much later
                while not self._can_take_more():
                    self._has_room.clear()
                    await self._has_room.wait()
        except Malformed as error:
            self.malformed = str(error)
        except Exception as error:  # else its requests would wait for replies that never come
            self.fail_by(error)
        finally:
            self._is_input_over = True
            self._has_output.set()

    async def frames(self) -> AsyncIterator[pb.ServerFrame]:
        """The replies, a frame per tick, until input has ended and every request is answered."""
        while True:
            await self._has_output.wait()
            self._has_output.clear()
            self._has_room.set()
            for frame in self._outbox.drain():
                yield frame
            if self.ended_because or self.malformed or self.failed:
                return
            if self._is_input_over and not self._active and not self._outbox:
                return

    def end_silent(self, reason: str) -> None:
        """Ends an idle client's stream; the client may open another at any time."""
        self.ended_because = reason
        self._leave()
        self._has_output.set()

    def fail_by(self, error: BaseException) -> None:
        """Ends the stream, as an error of the server's own left requests of it unanswered."""
        _log.error("a stream of requests failed", exc_info=error)
        self.failed = f"{type(error).__name__}: {error}"
        self._has_output.set()

    @abstractmethod
    def close(self) -> None:
        """Cancels all unfinished requests."""

    @abstractmethod
    def _leave(self) -> None:
        """Gives up the stream's place among those that are open."""

    @abstractmethod
    def _take(self, frame: pb.ClientFrame) -> None:
        """Begins the frame's requests, and drops those that it cancels."""

    @abstractmethod
    def _can_take_more(self) -> bool:
        """Whether another frame is read now."""


async def served(
    stream: FrameStream, frames: AsyncIterator[pb.ClientFrame], context: grpc.aio.ServicerContext
) -> str:
    """Answers a client's frames until its stream ends; returns why the server ended it, if it did.
    Raises Malformed; a fault of the server's own ends the call with UNKNOWN."""
    reading = asyncio.create_task(stream.read(frames))
    try:
        async for frame in stream.frames():
            await context.write(frame)
    finally:
        reading.cancel()
        stream.close()
        await asyncio.gather(reading, return_exceptions=True)
    if stream.malformed:
        raise Malformed(stream.malformed)
    if stream.failed:
        await context.abort(grpc.StatusCode.UNKNOWN, stream.failed)  # as gRPC itself does
    return stream.ended_because
