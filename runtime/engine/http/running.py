"""Runs the requests of one HTTP request as one session of the engine, like a gRPC client's.

So the engine's admission, limits, salts and fairness apply. When the reader stops (a client that
disconnects cancels its handler), unfinished requests are cancelled and their pages freed at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.errors import HttpError, bad, error_of
from sgc.runtime.engine.preparing.bounds import MAX_LOGPROBS
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.ledger import of_quota
from sgc.runtime.engine.server.session import Session
from sgc.runtime.engine.server.shared import LEAVING, Shared

Follow = Callable[[pb.Reply], pb.Request | None]
_WITHOUT_TOKEN = b"http"
"""Whose requests those are that have no token: a session for each is an owner for each, and by the
policy `program` they would go in the order in which they came."""


class Runs:
    """The sessions of the HTTP clients."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._sessions: set[Session] = set()

    def fail_all(self, reason: str) -> None:
        """Ends all unfinished requests with UNAVAILABLE."""
        for session in list(self._sessions):
            session.fail_all(reason)

    async def replies(
        self,
        requests: Sequence[pb.Request],
        caller: Caller,
        follow: Follow | None = None,
        blame: Callable[[HttpError], None] | None = None,
    ) -> AsyncGenerator[pb.Reply]:
        """Deltas and final replies as they come. caller: who asks. follow: returns the request, if
        any, that continues a reply, under the id of the request that ended. blame: adds details to
        an error of the engine.

        Raises HttpError at the first error, and if all replies together have more log-probabilities
        than one request may have.
        """
        if self._shared.is_draining:
            raise HttpError(503, LEAVING, code="unavailable")
        if not self._shared.has_room(caller.domain):
            raise self._full()
        with _counted(caller):
            session = Session(self._shared, caller, _WITHOUT_TOKEN)
            self._sessions.add(session)
            n_logprobs = 0
            asked = _Asked(requests, goes_on=follow is not None)
            reading = asyncio.create_task(session.read(asked.frames()))
            try:
                async for frame in session.frames():
                    for reply in frame.replies:
                        if reply.HasField("error"):
                            raise _failure(reply, blame)
                        n_logprobs += _n_logprobs(reply.generated)
                        if n_logprobs > MAX_LOGPROBS:
                            raise _too_many_logprobs()
                        if follow is not None:
                            asked.took(reply, follow(reply))
                        yield reply
                await reading
                if session.failed:
                    raise HttpError(500, f"the engine failed: {session.failed}", code="internal")
            finally:
                self._sessions.discard(session)
                reading.cancel()
                session.close()
                await asyncio.gather(reading, return_exceptions=True)

    def _full(self) -> HttpError:
        full = HttpError(429, "too many clients are served; try again later", code="overloaded")
        full.retry_after_s = self._shared.pace.next_place_s()
        return full

    async def finals(self, requests: Sequence[pb.Request], caller: Caller) -> list[pb.Generated]:
        """The final reply to each request, when all have finished; raises HttpError."""
        return [reply.generated for reply in await self._last(requests, caller)]

    async def embedded(self, requests: Sequence[pb.Request], caller: Caller) -> list[pb.Embedded]:
        """As `finals`, for embeddings; there may be more requests than a session can have."""
        n = self._shared.limits.max_in_flight
        parts = [requests[at : at + n] for at in range(0, len(requests), n)]
        with _counted(caller):  # counted once: a later part must not be refused for lack of a place
            return [reply.embedded for part in parts for reply in await self._last(part, caller)]

    async def _last(self, requests: Sequence[pb.Request], caller: Caller) -> list[pb.Reply]:
        found: dict[int, pb.Reply] = {}
        async with aclosing(self.replies(requests, caller)) as replies:
            async for reply in replies:
                if not reply.HasField("delta"):
                    found[reply.id] = reply
        return [found[request.id] for request in requests]


@contextmanager
def _counted(caller: Caller) -> Iterator[None]:
    """Counts an HTTP request in its client's account while it runs; an admitted request is not
    refused later. Raises HttpError if the account refuses it."""
    account = caller.account
    if account is None or caller.is_running:
        yield
        return
    if caller.is_counted:
        account.go_on()
    elif (refusal := account.begin()) is not None:
        raise error_of(of_quota(refusal).to_message())
    began_at = time.monotonic()
    caller.is_counted = caller.is_running = True
    try:
        yield
    finally:
        caller.is_running = False
        account.end(time.monotonic() - began_at)


def _failure(reply: pb.Reply, blame: Callable[[HttpError], None] | None) -> HttpError:
    error = error_of(reply.error)
    error.request_id = reply.id
    if blame is not None:
        blame(error)
    return error


def _n_logprobs(generated: pb.Generated) -> int:
    rows = (*generated.prompt_logprobs, *generated.logprobs)
    return sum(1 + len(row.top) for row in rows)


def _too_many_logprobs() -> HttpError:
    return bad(
        f"all completions together have more than {MAX_LOGPROBS} log-probabilities; "
        "ask for fewer at a time"
    )


class _Asked:
    """The frames that a session reads: the first requests, and those that follow on replies."""

    def __init__(self, requests: Sequence[pb.Request], goes_on: bool) -> None:
        self._n_open = len(requests) if goes_on else 0
        self._frames: asyncio.Queue[pb.ClientFrame | None] = asyncio.Queue()
        self._frames.put_nowait(pb.ClientFrame(requests=requests))
        self._close_at_end()

    async def frames(self) -> AsyncIterator[pb.ClientFrame]:
        while (frame := await self._frames.get()) is not None:
            yield frame

    def took(self, reply: pb.Reply, more: pb.Request | None) -> None:
        if more is not None:
            self._frames.put_nowait(pb.ClientFrame(requests=[more]))
        elif not reply.HasField("delta"):
            self._n_open -= 1
            self._close_at_end()

    def _close_at_end(self) -> None:
        if not self._n_open:
            self._frames.put_nowait(None)
