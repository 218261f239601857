"""The client's end of a session: requests of one loop tick go out in one frame.

`engine/backend.py` uses it: it makes the call and translates its end into an error.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

import grpc

from sgc.errors import BackendError, EngineUnavailable
from sgc.proto import engine_pb2 as pb
from sgc.runtime.executor.backends.engine.wire import error_of
from sgc.runtime.executor.interface.backend import OnDelta

MAX_FRAME_BYTES = 4 * 1024 * 1024


class _Pending:
    """A request whose final reply is awaited."""

    __slots__ = ("done", "is_sent", "on_delta", "request", "size")

    def __init__(self, request: pb.Request, size: int, on_delta: OnDelta | None) -> None:
        self.request = request
        self.size = size
        self.on_delta = on_delta
        self.is_sent = False
        self.done: asyncio.Future[pb.Reply] = asyncio.get_running_loop().create_future()


class Stream:
    """One open session; `call` is a grpc.aio stream-stream call.

    max_in_flight: unfinished requests that the engine may have; others wait here, in order.
    """

    def __init__(
        self,
        call: Any,
        error_of_end: Callable[[grpc.RpcError | None], BackendError],
        max_in_flight: int,
    ) -> None:
        self._n_free = max_in_flight
        self._call = call
        self._error_of_end = error_of_end
        self._ids = count(1)
        self._pending: dict[int, _Pending] = {}
        self._waiting: deque[_Pending] = deque()
        self._cancels: list[int] = []
        self._has_output = asyncio.Event()
        self.is_open = True
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]

    async def ask(self, request: pb.Request, size: int, on_delta: OnDelta | None) -> pb.Reply:
        """Sends a request of `size` bytes and returns its final reply; may be cancelled. Raises
        the error that is replied."""
        reply = await self.reply_to(request, size, on_delta)
        if reply.HasField("error"):
            raise error_of(reply.error)
        return reply

    async def reply_to(self, request: pb.Request, size: int, on_delta: OnDelta | None) -> pb.Reply:
        """The same, but an error reply is returned, not raised."""
        if not self.is_open:
            raise EngineUnavailable("the connection to the engine is closed")
        request.id = next(self._ids)
        pending = self._pending[request.id] = _Pending(request, size, on_delta)
        self._waiting.append(pending)
        self._has_output.set()
        try:
            return await pending.done
        finally:
            if self._pending.pop(request.id, None) is not None:
                self._cancel(pending)

    async def close(self) -> None:
        self._end(EngineUnavailable("the connection to the engine was closed"))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _cancel(self, pending: _Pending) -> None:
        """Called for a request without a final reply, whose caller gave up."""
        if not pending.is_sent:
            with contextlib.suppress(ValueError):  # the stream may have ended
                self._waiting.remove(pending)
        elif self.is_open:
            self._n_free += 1
            self._cancels.append(pending.request.id)
            self._has_output.set()

    async def _write(self) -> None:
        while True:
            await self._has_output.wait()
            await asyncio.sleep(0)  # so that other requests of this tick join the frame
            if not self.is_open:
                return
            self._has_output.clear()
            for frame in self._frames():
                try:
                    await self._call.write(frame)
                except (grpc.RpcError, asyncio.InvalidStateError):
                    return  # the reader gets the reason

    def _frames(self) -> list[pb.ClientFrame]:
        """The frames with cancels and as many waiting requests as the engine accepts."""
        cancels, self._cancels = self._cancels, []
        parts: list[list[pb.Request]] = [[]]
        size = 0
        while self._waiting and self._n_free > 0:
            pending = self._waiting.popleft()
            pending.is_sent = True
            self._n_free -= 1
            if size and size + pending.size > MAX_FRAME_BYTES:
                parts.append([])
                size = 0
            parts[-1].append(pending.request)
            size += pending.size
        first = pb.ClientFrame(requests=parts[0], cancels=cancels)
        frames = [first, *(pb.ClientFrame(requests=part) for part in parts[1:])]
        return frames if parts[0] or cancels else []

    async def _read(self) -> None:
        error: BackendError | None = None
        try:
            async for frame in self._call:
                for reply in frame.replies:
                    self._take(reply)
            error = self._error_of_end(None)
        except grpc.RpcError as broken:
            error = self._error_of_end(broken)
        finally:
            self._end(error or EngineUnavailable("the connection to the engine was closed"))

    def _take(self, reply: pb.Reply) -> None:
        pending = self._pending.get(reply.id)
        if pending is None or pending.done.done():
            return  # cancelled
        if not reply.HasField("delta"):
            del self._pending[reply.id]
            self._n_free += 1
            if self._waiting:
                self._has_output.set()
            pending.done.set_result(reply)
        elif pending.on_delta is not None:
            try:
                pending.on_delta(reply.delta.text)
            except Exception as error:  # the caller's own error ends only its request
                pending.done.set_exception(error)

    def _end(self, error: BackendError) -> None:
        self.is_open = False
        self._has_output.set()  # so that the writer ends
        pending, self._pending = self._pending, {}
        for item in pending.values():
            if not item.done.done():
                item.done.set_exception(copied(error))
        with contextlib.suppress(Exception):
            self._call.cancel()


def copied(error: BackendError) -> BackendError:
    """A new exception for each waiter, as each adds its own traceback."""
    return type(error)(error.message, where=error.where, hint=error.hint)
