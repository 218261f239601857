"""The server's end of the link to the step process: one message per tick in each direction.

It gives every update to the submitter of the request, and reports the process's death to all of
them. `worker/process.py` starts the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
from collections.abc import Callable
from itertools import count
from typing import Generic, TypeVar

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.worker.process import WorkerProcess

MAX_FRAME_BYTES = 256 * 1024 * 1024
MAX_PART_BYTES = 32 * 1024 * 1024
STOP_TIMEOUT_S = 3.0
OnUpdate = Callable[[wpb.Update], None]
T = TypeVar("T")
_log = logging.getLogger(__name__)


class WorkerDied(Exception):
    """The step process has ended, or could not load its model."""


class WorkerLink:
    """Call `connect` in the event loop; then `submit` and `cancel`. `close` ends the process.

    closing_s: how long the process may take to finish, once it is told to end.
    """

    def __init__(self, worker: WorkerProcess, closing_s: float = 0.0) -> None:
        self._closing_s = closing_s
        self._process, self._socket = worker.process, worker.socket
        self._ids = count(1)
        self._handlers: dict[int, OnUpdate] = {}
        self._next = wpb.StepInput()
        self._is_flush_scheduled = False
        self._stats: _PendingQuery[pb.Stats] = _PendingQuery()
        self._flushes: _PendingQuery[int] = _PendingQuery()
        self._death: str | None = None
        self._dead = asyncio.Event()
        self._is_closing = False
        self._is_ready = False

    # Life.

    async def connect(self) -> wpb.Ready:
        """Waits until the model is loaded; raises `WorkerDied` if it cannot be."""
        self._socket.setblocking(False)
        self._reader, self._writer = await asyncio.open_connection(
            sock=self._socket, limit=1024 * 1024
        )
        try:
            ready = wpb.Ready.FromString(await self._read_frame())
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise WorkerDied(await self._describe_exit("while loading")) from error
        if ready.error:
            raise WorkerDied(ready.error)
        self._is_ready = True
        self._read_task = asyncio.create_task(self._read_all())
        return ready

    async def close(self) -> None:
        """Ends the process: it stops when its input ends; while it loads, it is killed."""
        self._is_closing = True
        if hasattr(self, "_read_task"):
            self._read_task.cancel()
        if hasattr(self, "_writer"):
            self._writer.close()
        else:
            self._socket.close()
        if not self._is_ready:
            self._process.kill()
        closing_s = self._closing_s if self._is_ready else 0.0
        await asyncio.to_thread(_end, self._process, closing_s)

    async def wait_dead(self) -> str:
        """Returns why the process died, once it does."""
        await self._dead.wait()
        assert self._death is not None
        return self._death

    # Requests.

    def submit(self, work: wpb.WorkerRequest, on_update: OnUpdate) -> int:
        """Sends a request with this tick's message and returns its id."""
        work.id = next(self._ids)
        self._handlers[work.id] = on_update
        self._next.requests.append(work)
        self._schedule()
        return work.id

    def cancel(self, worker_id: int) -> None:
        """Drops a request; no further update of it is delivered."""
        if self._handlers.pop(worker_id, None) is not None:
            self._next.cancels.append(worker_id)
            self._schedule()

    async def stats(self) -> pb.Stats:
        future = self._stats.ask()
        self._schedule()
        return await future

    async def flush_cache(self) -> int:
        """Drops all unused cached prefixes; returns the number of tokens freed."""
        future = self._flushes.ask()
        self._schedule()
        return await future

    # Sending: all requests of one tick of the event loop go out as one message.

    def _schedule(self) -> None:
        if not self._is_flush_scheduled:
            self._is_flush_scheduled = True
            asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._is_flush_scheduled = False
        if self._death is not None:
            self._fail_all(self._death)
            return
        message, self._next = self._next, wpb.StepInput()
        message.want_stats = self._stats.take()
        message.flush_cache = self._flushes.take()
        for part in _parts(message):
            data = part.SerializeToString()
            self._writer.write(len(data).to_bytes(4, "big") + data)

    # Receiving.

    async def _read_frame(self) -> bytes:
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        if size > MAX_FRAME_BYTES:
            raise ConnectionError(f"the worker sent a message of {size} bytes")
        return await self._reader.readexactly(size)

    async def _read_all(self) -> None:
        reason = ""
        try:
            while True:
                self._deliver(wpb.StepOutput.FromString(await self._read_frame()))
        except (asyncio.IncompleteReadError, ConnectionError):
            reason = await self._describe_exit("while running")
        except Exception as error:
            reason = f"the link to the engine's worker broke: {error!r}"
        finally:
            if reason and not self._is_closing:
                self._death = reason
                self._dead.set()
                self._fail_all(reason)

    def _deliver(self, output: wpb.StepOutput) -> None:
        for update in output.updates:
            is_final = update.final or update.HasField("error")
            find = self._handlers.pop if is_final else self._handlers.get
            handler = find(update.id, None)
            if handler is None:
                continue
            try:
                handler(update)
            except BaseException as error:  # a panic of the tokenizers library is not an Exception
                self._end_alone(update.id, handler, error)
        if output.HasField("stats") and self._stats.answer(output.stats):
            self._schedule()
        if output.flushed and self._flushes.answer(output.flushed_tokens):
            self._schedule()

    def _end_alone(self, worker_id: int, handler: OnUpdate, error: BaseException) -> None:
        """Ends only the request whose reply cannot be made."""
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise error
        _log.error("a reply cannot be made", exc_info=error)
        self.cancel(worker_id)
        message = f"the reply cannot be made: {type(error).__name__}: {error}"
        failed = pb.Error(code=pb.ERROR_CODE_INTERNAL, message=message)
        handler(wpb.Update(id=worker_id, final=True, error=failed))

    def _fail_all(self, reason: str) -> None:
        handlers, self._handlers = self._handlers, {}
        for worker_id, handler in handlers.items():
            error = pb.Error(code=pb.ERROR_CODE_UNAVAILABLE, message=reason)
            handler(wpb.Update(id=worker_id, final=True, error=error))
        self._stats.fail(WorkerDied(reason))
        self._flushes.fail(WorkerDied(reason))

    async def _describe_exit(self, when: str) -> str:
        code = await asyncio.to_thread(_end, self._process)
        return f"the engine's worker process ended {when} (exit status {code})"


def _parts(message: wpb.StepInput) -> list[wpb.StepInput]:
    """The message, split if it is too large for one frame; [] if it is empty."""
    n_bytes = message.ByteSize()
    if n_bytes <= MAX_PART_BYTES:
        return [message] if n_bytes else []
    parts: list[wpb.StepInput] = []
    size = MAX_PART_BYTES
    for request in message.requests:
        size += request.ByteSize()
        if size > MAX_PART_BYTES:
            parts.append(wpb.StepInput())
            size = request.ByteSize()
        parts[-1].requests.append(request)
    del message.requests[:]
    return [*parts, message]


class _PendingQuery(Generic[T]):
    """Futures that wait for a query of which at most one is open at a time."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[T]] = []
        self._asked: list[asyncio.Future[T]] = []

    def ask(self) -> asyncio.Future[T]:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    def take(self) -> bool:
        """Whether to send the query now."""
        if self._asked or not self._waiting:
            return False
        self._asked, self._waiting = self._waiting, []
        return True

    def answer(self, value: T) -> bool:
        """Gives the answer to the waiters; returns whether others have asked since."""
        for future in self._asked:
            if not future.done():
                future.set_result(value)
        self._asked = []
        return bool(self._waiting)

    def fail(self, error: Exception) -> None:
        for future in [*self._asked, *self._waiting]:
            if not future.done():
                future.set_exception(error)
        self._asked, self._waiting = [], []


def _end(process: subprocess.Popen[bytes], closing_s: float = 0.0) -> int:
    """Waits for a process to end, then terminates and at last kills it."""
    stops = (process.terminate, STOP_TIMEOUT_S + closing_s), (process.kill, STOP_TIMEOUT_S)
    for stop, after_s in stops:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(after_s)
        stop()
    return process.wait()
