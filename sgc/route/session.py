"""One client's stream over gRPC: requests in, the engines' replies out, many of each in a frame.

Reading pauses while the client does not read its replies, or while too many bytes of requests are
unanswered: a request is kept until it is answered, since it may be sent to another engine.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from sgc.proto import engine_pb2 as pb
from sgc.route.asking import Asking
from sgc.route.messages import error
from sgc.runtime.engine.http.errors import log
from sgc.runtime.engine.server.frames import FrameStream

MAX_SESSIONS = 512
MAX_SILENCE_S = 300.0
MAX_IN_FLIGHT = 4096  # of a session
MAX_ALL_IN_FLIGHT = 32_768
MAX_OUTBOX = 4096  # replies
MAX_BYTES = 32 * 1024 * 1024  # of unanswered requests; a session may exceed it by one frame
MAX_ALL_BYTES = 256 * 1024 * 1024


@dataclass(slots=True)
class Sessions:
    """The state that all sessions share: their number, and the bytes that they hold."""

    open: set[Session] = field(default_factory=set)
    n_active: int = 0
    n_bytes: int = 0

    def has_room(self) -> bool:
        """Whether a session may be opened; ends a silent one to make room if needed."""
        if len(self.open) < MAX_SESSIONS:
            return True
        silent = [each for each in self.open if each.is_silent]
        if silent:
            longest = min(silent, key=lambda each: each.silent_since)
            longest.end_silent("the stream was idle and its slot was needed; open another")
        return bool(silent)

    def end_silent(self) -> None:
        since = time.monotonic() - MAX_SILENCE_S
        for each in [each for each in self.open if each.is_silent and each.silent_since < since]:
            each.end_silent(f"the stream was idle for {MAX_SILENCE_S:g} s; open another")


class Session(FrameStream):
    def __init__(self, sessions: Sessions, asking: Asking) -> None:
        super().__init__()
        self._sessions, self._asking = sessions, asking
        self._active: dict[int, asyncio.Task[None]] = {}
        self._n_bytes = 0
        sessions.open.add(self)

    def close(self) -> None:
        """Cancels all unfinished requests."""
        for request_id in list(self._active):
            self._cancel(request_id)
        self._leave()

    def _leave(self) -> None:
        self._sessions.open.discard(self)

    def _take(self, frame: pb.ClientFrame) -> None:
        self.silent_since = time.monotonic()
        before = [request_id for request_id in frame.cancels if request_id in self._active]
        for request_id in before:
            self._cancel(request_id)
        for request in frame.requests:
            self._begin(request)
        for request_id in {*frame.cancels}.difference(before):
            self._cancel(request_id)

    def _begin(self, request: pb.Request) -> None:
        if request.id in self._active:
            self._cancel(request.id)
            told = f"id {request.id} is used by an unfinished request; both are dropped"
            self._reply(request.id, error(pb.ERROR_CODE_INVALID_ARGUMENT, told))
            return
        if len(self._active) >= MAX_IN_FLIGHT or self._sessions.n_active >= MAX_ALL_IN_FLIGHT:
            told = "too many requests are unfinished; try again later"
            self._reply(request.id, error(pb.ERROR_CODE_RESOURCE_EXHAUSTED, told))
            return
        size = request.ByteSize()
        self._count(1, size)
        task = asyncio.create_task(self._answer(request.id, request))
        self._active[request.id] = task
        task.add_done_callback(lambda _: self._count(-1, -size))

    def _count(self, n: int, n_bytes: int) -> None:
        self._n_bytes += n_bytes
        self._sessions.n_active += n
        self._sessions.n_bytes += n_bytes
        self._has_room.set()

    async def _answer(self, request_id: int, request: pb.Request) -> None:
        """request: its id is replaced by one of its engine's stream."""
        task = asyncio.current_task()

        def show(text: str) -> None:
            if self._active.get(request_id) is task:  # else it was cancelled
                self._outbox.add_delta(request_id, text)
                self._has_output.set()

        try:
            reply = await self._asking.reply_to(request, show)
        except Exception:
            log.exception("a request failed")
            reply = error(pb.ERROR_CODE_INTERNAL, "the router failed; its log says why")
        del self._active[request_id]  # a cancelled task does not get here
        self._reply(request_id, reply)

    def _reply(self, request_id: int, reply: pb.Reply) -> None:
        reply.id = request_id
        self._outbox.add(request_id).CopyFrom(reply)
        self.silent_since = time.monotonic()
        self._has_output.set()

    def _cancel(self, request_id: int) -> None:
        task = self._active.pop(request_id, None)
        if task is not None:
            task.cancel()

    def _can_take_more(self) -> bool:
        has_share = self._sessions.n_bytes < MAX_ALL_BYTES or not self._n_bytes
        return len(self._outbox) < MAX_OUTBOX and has_share and self._n_bytes < MAX_BYTES
