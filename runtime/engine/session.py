"""One client's multiplexed stream: requests in, replies out, many of each in a frame.

Holds the stream's unfinished requests. A cancelled request gets no reply. Reading pauses
while the client does not take its replies or too much text waits to be tokenized.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.bounds import RequestError, ServerLimits, invalid
from sgc.runtime.engine.outbox import Outbox
from sgc.runtime.engine.prepare import Prepared, n_chars, prepare_all
from sgc.runtime.engine.tally import Tally
from sgc.runtime.engine.tokenizer import Tokenizer
from sgc.runtime.engine.updates import handler
from sgc.runtime.engine.worker_link import WorkerLink

INLINE_CHARS = 16 * 1024  # more text than this is tokenized on a thread
MAX_PREPARING_CHARS = 32 * 1024 * 1024


@dataclass(slots=True)
class Shared:
    """What all sessions of a server use."""

    tokenizer: Tokenizer
    link: WorkerLink
    limits: ServerLimits
    threads: Executor
    n_active: int = 0
    sessions: set[Session] = field(default_factory=set)
    tally: Tally = field(default_factory=Tally)

    async def stats(self) -> pb.Stats:
        """The step process's counts and ours; raises `WorkerDied`. Waits for a step to end."""
        stats = await self.link.stats()
        self.tally.write(stats)
        stats.in_flight_requests, stats.sessions = self.n_active, len(self.sessions)
        return stats


@dataclass(slots=True, eq=False)
class _Active:
    """An unfinished request; worker_id is None while it is being tokenized."""

    worker_id: int | None = None


class Session:
    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._active: dict[int, _Active] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._outbox = Outbox()
        self._preparing_chars = 0
        self._has_output = asyncio.Event()
        self._has_room = asyncio.Event()
        self._is_input_over = False
        shared.sessions.add(self)

    async def read(self, frames: AsyncIterator[pb.ClientFrame]) -> None:
        """Takes the client's frames until it closes its side."""
        try:
            async for frame in frames:
                self._take(frame)
                while not self._can_take_more():
                    self._has_room.clear()
                    await self._has_room.wait()
        finally:
            self._is_input_over = True
            self._has_output.set()

    async def frames(self) -> AsyncIterator[pb.ServerFrame]:
        """The replies, all of a tick in one frame, until input is over and all are answered."""
        while True:
            await self._has_output.wait()
            self._has_output.clear()
            self._has_room.set()
            for frame in self._outbox.drain():
                yield frame
            if self._is_input_over and not self._active and not self._outbox:
                return

    def fail_all(self, reason: str) -> None:
        """Ends every unfinished request with UNAVAILABLE and the stream after that."""
        for request_id in list(self._active):
            self._drop(request_id)
            self._refuse(request_id, RequestError(pb.ERROR_CODE_UNAVAILABLE, reason))
        self._is_input_over = True
        self._has_output.set()

    def close(self) -> None:
        """Cancels whatever is unfinished."""
        for request_id in list(self._active):
            self._cancel(request_id)
        for task in self._tasks:
            task.cancel()
        self._shared.sessions.discard(self)

    # Input.

    def _take(self, frame: pb.ClientFrame) -> None:
        accepted = [request for request in frame.requests if self._admit(request)]
        for request_id in frame.cancels:
            self._cancel(request_id)
        accepted = [request for request in accepted if request.id in self._active]
        small: list[pb.Request] = []
        n_small = 0
        for request in accepted:
            size = n_chars(request)
            if size > INLINE_CHARS:
                self._prepare_on_thread([request], size)
            else:
                small.append(request)
                n_small += size
        if n_small <= INLINE_CHARS:
            self._submit_all(small, self._prepare(small), self._actives(small))
        else:
            self._prepare_on_thread(small, n_small)

    def _admit(self, request: pb.Request) -> bool:
        limits = self._shared.limits
        self._shared.tally.requests += 1
        if request.id in self._active:
            self._cancel(request.id)
            reason = f"id {request.id} is used by an unfinished request; both are dropped"
            self._refuse(request.id, invalid(reason))
            return False
        is_full = len(self._active) >= limits.max_in_flight
        if is_full or self._shared.n_active >= limits.max_total_in_flight:
            whose = "this session" if is_full else "the engine"
            reason = f"{whose} has too many unfinished requests; try again later"
            self._refuse(request.id, RequestError(pb.ERROR_CODE_RESOURCE_EXHAUSTED, reason))
            return False
        self._active[request.id] = _Active()
        self._shared.n_active += 1
        return True

    def _prepare(self, requests: Sequence[pb.Request]) -> list[Prepared | RequestError]:
        return prepare_all(requests, self._shared.tokenizer, self._shared.limits)

    def _actives(self, requests: Sequence[pb.Request]) -> list[_Active]:
        return [self._active[request.id] for request in requests]

    def _prepare_on_thread(self, requests: list[pb.Request], size: int) -> None:
        work = self._prepare_later(requests, self._actives(requests), size)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _prepare_later(
        self, requests: list[pb.Request], actives: list[_Active], size: int
    ) -> None:
        self._preparing_chars += size
        loop = asyncio.get_running_loop()
        try:
            prepared = await loop.run_in_executor(self._shared.threads, self._prepare, requests)
        finally:
            self._preparing_chars -= size
            self._has_room.set()
        self._submit_all(requests, prepared, actives)

    def _submit_all(
        self,
        requests: Sequence[pb.Request],
        prepared: Sequence[Prepared | RequestError],
        actives: Sequence[_Active],
    ) -> None:
        for request, result, active in zip(requests, prepared, actives, strict=True):
            if self._active.get(request.id) is not active:
                continue  # cancelled meanwhile
            if isinstance(result, RequestError):
                self._drop(request.id)
                self._refuse(request.id, result)
            else:
                on_update = handler(self, result, self._shared.tokenizer)
                active.worker_id = self._shared.link.submit(result.work, on_update)

    def _cancel(self, request_id: int) -> None:
        if request_id in self._active:
            self._drop(request_id)
            self._shared.tally.cancelled += 1

    def _drop(self, request_id: int) -> None:
        active = self._active.pop(request_id, None)
        if active is None:
            return
        self._shared.n_active -= 1
        if active.worker_id is not None:
            self._shared.link.cancel(active.worker_id)

    def _can_take_more(self) -> bool:
        has_space = len(self._outbox) < self._shared.limits.max_outbox
        return has_space and self._preparing_chars < MAX_PREPARING_CHARS

    # Output.

    def finish(self, request_id: int, kind: str, update: wpb.Update) -> pb.Reply:
        """The final reply to a request, for the caller to fill in now; update: its last one."""
        tally = self._shared.tally
        tally.finished += 1
        if tally.watch is not None:
            tally.watch(kind, update.usage)
        return self._last_reply(request_id)

    def fail(self, request_id: int, error: pb.Error) -> None:
        """The step process could not do it, or would not."""
        self._shared.tally.fail(error.code)
        self._last_reply(request_id).error.CopyFrom(error)

    def _last_reply(self, request_id: int) -> pb.Reply:
        if self._active.pop(request_id, None) is not None:
            self._shared.n_active -= 1
        self._has_output.set()
        return self._outbox.add(request_id)

    def send_delta(self, request_id: int, text: str) -> None:
        """Streams text; what a slow client has not taken yet is merged."""
        self._has_output.set()
        self._outbox.add_delta(request_id, text)

    def _refuse(self, request_id: int, error: RequestError) -> None:
        self._has_output.set()
        self._shared.tally.fail(error.code)
        self._outbox.add(request_id).error.CopyFrom(error.to_message())
