"""One client's multiplexed stream: requests in, replies out, many of each in a frame.

Holds the stream's unfinished requests. A cancelled request gets no reply. Reading pauses while the
client does not read its replies or too much text waits to be tokenized. What every stream of frames
does is in `frames.py`, state that all sessions share in `shared.py`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from threading import Event

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.preparing.bounds import RequestError, invalid
from sgc.runtime.engine.preparing.prepare import (
    Dropped,
    Prepared,
    is_cut,
    n_chars,
    prepare_all,
    texts_of,
    too_long,
)
from sgc.runtime.engine.preparing.updates import handler
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.accounts.quotas import NO_QUOTA, PRIORITIES
from sgc.runtime.engine.server.frames import FrameStream
from sgc.runtime.engine.server.ledger import Active, Ledger
from sgc.runtime.engine.server.shared import LEAVING, Shared
from sgc.runtime.engine.text.tokenizer import GoOn, always
from sgc.runtime.telemetry.traceparent import valid

INLINE_CHARS = 4 * 1024  # more text than this is tokenized on a thread
MAX_PREPARING_CHARS = 32 * 1024 * 1024
MAX_ALL_PREPARING_CHARS = 128 * 1024 * 1024  # of all sessions; each may exceed it by one frame


class Session(FrameStream):
    """requests_owner: the owner that takes turns in the engine's policy `program`; by default
    `owner`. If it is given, the session is one request of its client, whose time began with the
    call.
    """

    def __init__(
        self, shared: Shared, caller: Caller | None = None, requests_owner: bytes = b""
    ) -> None:
        super().__init__()
        self._shared = shared
        self._caller = caller = caller or Caller()
        self._domain = domain = caller.domain
        self._owner_key = domain or requests_owner or next(shared.numbers).to_bytes(8, "big")
        self._is_whole = bool(requests_owner)  # one request of its client, which may need several
        self._active: dict[int, Active] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._preparing_chars = 0
        self._ledger = Ledger(shared.tally, caller, self._is_whole, shared.observers)
        shared.sessions.add(self)

    @property
    def owner(self) -> object:
        """The session's token domain, or the session itself; owners take turns on threads."""
        return self._domain or self

    def fail_all(self, reason: str) -> None:
        """Ends every unfinished request with UNAVAILABLE, then the stream."""
        for request_id in list(self._active):
            self._stop_preparing(request_id)
            error = RequestError(pb.ERROR_CODE_UNAVAILABLE, reason)
            self._refuse(request_id, error, self._drop(request_id))
        self._is_input_over = True
        self._has_output.set()

    def close(self) -> None:
        """Cancels all unfinished requests."""
        for request_id in list(self._active):
            self._cancel(request_id)
        for task in self._tasks:
            task.cancel()
        self._leave()

    def _leave(self) -> None:
        self._shared.sessions.discard(self)

    # Input.

    def _take(self, frame: pb.ClientFrame) -> None:
        self.silent_since = time.monotonic()
        # Cancelled requests make room for new ones in the same frame.
        before = [request_id for request_id in frame.cancels if request_id in self._active]
        for request_id in before:
            self._cancel(request_id)
        accepted = [request for request in frame.requests if self._admit(request)]
        for request_id in {*frame.cancels}.difference(before):
            self._cancel(request_id)
        accepted = [request for request in accepted if request.id in self._active]
        small: list[pb.Request] = []
        n_small = 0
        for request in accepted:
            texts = texts_of(request)
            size = n_chars(request, texts)
            if size <= INLINE_CHARS:
                small.append(request)
                n_small += size
            elif problem := self._problem_of(request, texts):
                self._refuse(request.id, problem, self._drop(request.id))
            else:
                active = self._active[request.id]
                active.preparing = self._prepare_on_thread([request], size)
        if n_small <= INLINE_CHARS:
            self._submit_all(small, self._prepare(small), self._actives(small))
        else:
            self._prepare_on_thread(small, n_small)

    def _problem_of(self, request: pb.Request, texts: list[str]) -> RequestError | None:
        if is_cut(request):
            return None
        return too_long(texts, self._shared.tokenizer, self._shared.limits)

    def _admit(self, request: pb.Request) -> bool:
        limits = self._shared.limits
        self._shared.tally.requests += 1
        if self._shared.is_draining and not self._is_whole:
            self._refuse(request.id, RequestError(pb.ERROR_CODE_UNAVAILABLE, LEAVING))
            return False
        if request.id in self._active:
            self._cancel(request.id)
            reason = f"id {request.id} is used by an unfinished request; both are dropped"
            self._refuse(request.id, invalid(reason))
            return False
        is_full = len(self._active) >= limits.max_in_flight
        if is_full or self._shared.n_active >= limits.max_total_in_flight:
            whose = "this session" if is_full else "the engine"
            reason = f"{whose} has too many unfinished requests; try again later"
            pace = self._shared.pace
            wait_s = pace.own_place_s() if is_full else pace.next_place_s()
            full = RequestError(pb.ERROR_CODE_RESOURCE_EXHAUSTED, reason, wait_s)
            self._refuse(request.id, full)
            return False
        timeout_s = request.timeout_s if request.HasField("timeout_s") else math.inf
        if request.priority not in PRIORITIES.values():
            reason = f"priority must be -1, 0 or 1, not {request.priority}"
            self._refuse(request.id, invalid(reason))
            return False
        if not timeout_s > 0:
            self._refuse(request.id, invalid(f"timeout_s must be above 0, not {timeout_s}"))
            return False
        if (error := self._ledger.begin()) is not None:
            self._refuse(request.id, error)
            return False
        self._active[request.id] = Active(
            request.WhichOneof("kind") or "",
            request.adapter,
            valid(request.traceparent),
            request.prompt if self._shared.keeps_prompts else None,
            priority=self._priority_of(request),
            deadline=self._timer(request.id, timeout_s),
        )
        self._shared.n_active += 1
        return True

    def _priority_of(self, request: pb.Request) -> int:
        account, asked = self._caller.account, self._caller.priority
        if request.HasField("priority"):
            asked = request.priority
        return (NO_QUOTA if account is None else account.quota).priority_of(asked)

    def _timer(self, request_id: int, timeout_s: float) -> asyncio.TimerHandle | None:
        """A timer that ends the request when its time is over. timeout_s: its own limit."""
        now, most_s = time.monotonic(), self._shared.limits.max_request_s
        given_s = self._caller.timeout_s
        timeout_s = min(timeout_s, most_s, math.inf if given_s is None else given_s)
        if timeout_s == math.inf:
            return None
        began_at = self._caller.began_at if self._is_whole else now
        left_s = max(0.0, began_at + timeout_s - now)
        loop = asyncio.get_running_loop()
        return loop.call_later(left_s, self._expire, request_id, timeout_s)

    def _expire(self, request_id: int, timeout_s: float) -> None:
        self._stop_preparing(request_id)
        reason = f"the request took longer than the {timeout_s:g} s that it may take"
        error = RequestError(pb.ERROR_CODE_DEADLINE_EXCEEDED, reason)
        self._refuse(request_id, error, self._drop(request_id))

    def _prepare(
        self, requests: Sequence[pb.Request], go_on: GoOn = always
    ) -> list[Prepared | RequestError]:
        shared = self._shared
        return prepare_all(requests, shared.tokenizer, shared.limits, self._domain, go_on)

    def _actives(self, requests: Sequence[pb.Request]) -> list[Active]:
        return [self._active[request.id] for request in requests]

    def _prepare_on_thread(self, requests: list[pb.Request], size: int) -> asyncio.Task[None]:
        self._preparing_chars += size
        self._shared.preparing_chars += size
        work = self._prepare_later(requests, self._actives(requests), size)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._end_preparing(done, size))
        return task

    def _end_preparing(self, task: asyncio.Task[None], size: int) -> None:
        self._tasks.discard(task)
        self._preparing_chars -= size
        self._shared.preparing_chars -= size
        self._has_room.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail_by(error)

    async def _prepare_later(
        self, requests: list[pb.Request], actives: list[Active], size: int
    ) -> None:
        def prepare(is_dropped: Event) -> list[Prepared | RequestError]:
            def go_on() -> None:
                if is_dropped.is_set():
                    raise Dropped

            return self._prepare(requests, go_on)

        lane = self._shared.lane_for(size)
        prepared = await lane.run(self.owner, prepare)
        for active in actives:
            active.preparing = None
        self._submit_all(requests, prepared, actives)

    def _submit_all(
        self,
        requests: Sequence[pb.Request],
        prepared: Sequence[Prepared | RequestError],
        actives: Sequence[Active],
    ) -> None:
        for request, result, active in zip(requests, prepared, actives, strict=True):
            if self._active.get(request.id) is not active:
                continue  # cancelled meanwhile
            if isinstance(result, RequestError):
                self._refuse(request.id, result, self._drop(request.id))
            else:
                self._submit(request.id, active, result)

    def _submit(self, request_id: int, active: Active, prepared: Prepared) -> None:
        error = self._ledger.reserve(active, prepared.work)
        if error is not None:
            self._refuse(request_id, error, self._drop(request_id))
            return
        prepared.work.owner = self._owner_key
        prepared.work.priority = active.priority
        on_update = handler(self, prepared, self._shared.tokenizer)
        on_update = self._ledger.watched(active, on_update)
        active.worker_id = self._shared.link.submit(prepared.work, on_update)

    def _cancel(self, request_id: int) -> None:
        if request_id in self._active:
            self._stop_preparing(request_id)
            self._ledger.cancelled(request_id, self._drop(request_id))

    def _stop_preparing(self, request_id: int) -> None:
        preparing = self._active[request_id].preparing
        if preparing is not None:
            preparing.cancel()

    def _drop(self, request_id: int) -> Active | None:
        active = self._remove(request_id)
        if active is not None and active.worker_id is not None:
            self._shared.link.cancel(active.worker_id)
        return active

    def _remove(self, request_id: int) -> Active | None:
        active = self._active.pop(request_id, None)
        if active is not None:
            self._shared.n_active -= 1
            self._shared.pace.ended()
            if active.deadline is not None:
                active.deadline.cancel()
        return active

    def _can_take_more(self) -> bool:
        own, everyones = self._preparing_chars, self._shared.preparing_chars
        has_share = everyones < MAX_ALL_PREPARING_CHARS or not own
        has_space = len(self._outbox) < self._shared.limits.max_outbox
        return has_space and has_share and own < MAX_PREPARING_CHARS

    # Output.

    def finish(self, request_id: int, kind: str, update: wpb.Update) -> pb.Reply:
        """The final reply to a request, for the caller to fill in at once. update: the last one."""
        self._ledger.finished(request_id, self._remove(request_id), kind, update)
        return self._last_reply(request_id)

    def fail(self, request_id: int, error: pb.Error) -> None:
        """Replies with an error of the step process."""
        self._ledger.failed(request_id, self._remove(request_id), error)
        told = self._last_reply(request_id).error
        told.CopyFrom(error)
        if error.code == pb.ERROR_CODE_RESOURCE_EXHAUSTED:  # its queue is full
            told.retry_after_s = self._shared.pace.next_place_s()

    def _last_reply(self, request_id: int) -> pb.Reply:
        self.silent_since = time.monotonic()
        self._has_output.set()
        return self._outbox.add(request_id)

    def send_delta(self, request_id: int, text: str) -> pb.Delta:
        """Streams text; text that a slow client has not read yet is merged. Returns what is to be
        sent, to which log-probabilities may be added at once."""
        self._has_output.set()
        return self._outbox.add_delta(request_id, text)

    def _refuse(self, request_id: int, error: RequestError, active: Active | None = None) -> None:
        """active: the request, if it had begun."""
        self._has_output.set()
        self._ledger.failed(request_id, active, error)
        self._outbox.add(request_id).error.CopyFrom(error.to_message())
