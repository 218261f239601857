"""The client's end of a session: requests of one loop tick go out in one frame.

Used by `engine_backend.py`, which makes the call and says what its end means.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from itertools import count
from typing import Any

import grpc

from sgc.errors import BackendError, EngineUnavailable
from sgc.proto import engine_pb2 as pb
from sgc.runtime.executor.engine_wire import error_of

MAX_FRAME_BYTES = 4 * 1024 * 1024
OnDelta = Callable[[str], None]


class _Pending:
    """A request whose final reply is awaited."""

    def __init__(self, on_delta: OnDelta | None) -> None:
        self.on_delta = on_delta
        self.done: asyncio.Future[pb.Reply] = asyncio.get_running_loop().create_future()


class Stream:
    """One open session; `call` is a grpc.aio stream-stream call."""

    def __init__(
        self, call: Any, error_of_end: Callable[[grpc.RpcError | None], BackendError]
    ) -> None:
        self._call = call
        self._error_of_end = error_of_end
        self._ids = count(1)
        self._pending: dict[int, _Pending] = {}
        self._requests: list[pb.Request] = []
        self._cancels: list[int] = []
        self._has_output = asyncio.Event()
        self.is_open = True
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]

    async def ask(self, request: pb.Request, on_delta: OnDelta | None) -> pb.Reply:
        """Sends a request and gives its final reply; cancelling this cancels the request."""
        if not self.is_open:
            raise EngineUnavailable("the connection to the engine is closed")
        message = pb.Request()
        message.CopyFrom(request)
        message.id = next(self._ids)
        pending = self._pending[message.id] = _Pending(on_delta)
        self._requests.append(message)
        self._has_output.set()
        try:
            reply = await pending.done
        finally:
            if self._pending.pop(message.id, None) is not None:
                self._cancel(message)
        if reply.HasField("error"):
            raise error_of(reply.error)
        return reply

    async def close(self) -> None:
        self._end(EngineUnavailable("the connection to the engine was closed"))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _cancel(self, message: pb.Request) -> None:
        """Called for a request without a final reply: its caller gave up."""
        unsent = [request for request in self._requests if request is not message]
        if len(unsent) < len(self._requests):
            self._requests = unsent
        elif self.is_open:
            self._cancels.append(message.id)
            self._has_output.set()

    async def _write(self) -> None:
        while True:
            await self._has_output.wait()
            await asyncio.sleep(0)  # let the others of this tick add theirs
            self._has_output.clear()
            for frame in self._frames():
                try:
                    await self._call.write(frame)
                except (grpc.RpcError, asyncio.InvalidStateError):
                    return  # the reader sees why

    def _frames(self) -> list[pb.ClientFrame]:
        requests, self._requests = self._requests, []
        cancels, self._cancels = self._cancels, []
        frames = [pb.ClientFrame(cancels=cancels)]
        size = 0
        for request in requests:
            n_bytes = request.ByteSize()
            if size and size + n_bytes > MAX_FRAME_BYTES:
                frames.append(pb.ClientFrame())
                size = 0
            frames[-1].requests.append(request)
            size += n_bytes
        return frames

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
            pending.done.set_result(reply)
        elif pending.on_delta is not None:
            try:
                pending.on_delta(reply.delta.text)
            except Exception as error:  # the caller's own; it ends its request alone
                pending.done.set_exception(error)

    def _end(self, error: BackendError) -> None:
        self.is_open = False
        pending, self._pending = self._pending, {}
        for item in pending.values():
            if not item.done.done():
                item.done.set_exception(_copy(error))
        with contextlib.suppress(Exception):
            self._call.cancel()


def _copy(error: BackendError) -> BackendError:
    """One exception for each waiter: they get tracebacks of their own."""
    return type(error)(error.message, where=error.where, hint=error.hint)
