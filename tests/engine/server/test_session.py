"""A session beside a scripted worker: what is paused, dropped, merged and kept in order."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import grpc
import grpc.aio
import pytest
from waiting import BOUND_S, settle

from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.http.errors import HttpError
from sgc.runtime.engine.http.running import Runs
from sgc.runtime.engine.preparing.bounds import ServerLimits
from sgc.runtime.engine.server import session as module
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.accounts.quotas import Account, Quota
from sgc.runtime.engine.server.frames import served
from sgc.runtime.engine.server.session import INLINE_CHARS, Session
from sgc.runtime.engine.server.shared import Shared
from sgc.runtime.engine.text.tokenizer import Tokenizer
from sgc.runtime.engine.worker.link import WorkerLink, _parts, _PendingQuery

LIMITS = ServerLimits(8192, 8192, 2048, max_in_flight=8, max_outbox=6)
FAULT = "ZeroDivisionError: integer division or modulo by zero"


class Link:
    """A worker that does nothing but remember."""

    def __init__(self) -> None:
        self.handlers: dict[int, Callable[[wpb.Update], None]] = {}
        self.cancelled: list[int] = []
        self.owners: list[bytes] = []

    def submit(self, work: wpb.WorkerRequest, on_update: Callable[[wpb.Update], None]) -> int:
        worker_id = len(self.handlers) + 100
        self.handlers[worker_id] = on_update
        self.owners.append(work.owner)
        return worker_id

    def cancel(self, worker_id: int) -> None:
        self.cancelled.append(worker_id)


class Setup:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self.link = Link()
        self.shared = Shared(tokenizer, cast(WorkerLink, self.link), LIMITS)
        self.session = Session(self.shared)
        self.frames: asyncio.Queue[pb.ClientFrame | None] = asyncio.Queue()
        self.reading = asyncio.create_task(self.session.read(self._frames()))

    async def _frames(self) -> AsyncIterator[pb.ClientFrame]:
        while (frame := await self.frames.get()) is not None:
            yield frame

    async def send(self, *requests: pb.Request, cancels: tuple[int, ...] = ()) -> None:
        self.frames.put_nowait(pb.ClientFrame(requests=requests, cancels=cancels))
        await settle()

    async def next_frame(self) -> pb.ServerFrame:
        async for frame in self.session.frames():
            return frame
        raise AssertionError("the stream ended")


def run(shipped: Tokenizer, body: Callable[[Setup], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        setup = Setup(shipped)
        try:
            await asyncio.wait_for(body(setup), BOUND_S)
        finally:
            setup.reading.cancel()
            setup.session.close()
            assert setup.shared.n_active == 0
            assert not setup.shared.sessions
            tally = setup.shared.tally
            ended = tally.finished + tally.refused + tally.cancelled + tally.failed
            assert tally.requests == ended + tally.expired

    asyncio.run(main())


def commit(request_id: int, text: str = "Hi") -> pb.Request:
    segment = pb.Segment(text=pb.TextRun(text=text))
    return pb.Request(id=request_id, prompt=pb.Prompt(segments=[segment]), commit=pb.Commit())


def streamed(request_id: int) -> pb.Request:
    sampling = pb.Sampling(max_tokens=50, top_p=1, top_k=-1, repetition_penalty=1, stop=["END"])
    request = commit(request_id)
    request.generate.CopyFrom(pb.Generate(sampling=sampling, stream=True))
    return request


def test_reading_pauses_while_replies_are_not_taken(shipped: Tokenizer) -> None:
    async def body(setup: Setup) -> None:
        for i in range(20):
            setup.frames.put_nowait(pb.ClientFrame(requests=[pb.Request(id=i)]))
        await settle()
        assert setup.frames.qsize() == 20 - LIMITS.max_outbox
        n_replies = 0
        while n_replies < 20:
            n_replies += len((await setup.next_frame()).replies)

    run(shipped, body)


@pytest.mark.parametrize("place", ["in the loop", "on a thread", "at the first look"])
def test_a_fault_of_the_server_ends_the_stream_and_leaves_nobody_waiting(
    shipped: Tokenizer, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    names = {"in the loop": "prepare_all", "on a thread": "prepare_all"}
    monkeypatch.setattr(module, names.get(place, "texts_of"), lambda *_: 1 // 0)
    size = 2 * INLINE_CHARS if place == "on a thread" else 2

    async def frames() -> AsyncIterator[pb.ClientFrame]:
        yield pb.ClientFrame(requests=[commit(1, "x" * size)])
        await asyncio.Event().wait()  # the client has sent all, and waits for its reply

    async def body(setup: Setup) -> None:
        told = []

        async def abort(code: grpc.StatusCode, details: str) -> None:
            told.append((code, details))

        context = cast(grpc.aio.ServicerContext, SimpleNamespace(abort=abort, write=None))
        await served(setup.session, frames(), context)
        assert told == [(grpc.StatusCode.UNKNOWN, FAULT)]
        runs = Runs(setup.shared)
        with pytest.raises(HttpError, match=FAULT) as error:
            await runs.finals([commit(1, "x" * size)], Caller())
        assert error.value.status == 500

    run(shipped, body)


def test_deltas_a_slow_client_has_not_taken_are_merged(shipped: Tokenizer) -> None:
    async def body(setup: Setup) -> None:
        await setup.send(streamed(1), streamed(2))
        ids = shipped.encode_continuation("The answer is here")
        for token_id in ids:
            for handler in setup.link.handlers.values():
                handler(wpb.Update(new_ids=[token_id]))
        replies = (await setup.next_frame()).replies
        assert [(r.id, r.delta.text) for r in replies] == [
            (1, "The answer is here"),
            (2, "The answer is here"),
        ]
        setup.link.handlers[100](wpb.Update(new_ids=shipped.encode_continuation(" E")))
        length = pb.FINISH_REASON_LENGTH
        setup.link.handlers[100](wpb.Update(final=True, finish_reason=length, matched_id=-1))
        replies = (await setup.next_frame()).replies
        assert replies[0].delta.text == " E"
        assert replies[1].generated.text == "The answer is here E"

    run(shipped, body)


def test_a_request_cancelled_while_tokenized_is_never_sent(
    shipped: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    real = Tokenizer.encode_commit

    def slow(self: Tokenizer, *arguments: Any) -> list[int]:
        gate.wait(BOUND_S)
        return real(self, *arguments)

    monkeypatch.setattr(Tokenizer, "encode_commit", slow)

    async def body(setup: Setup) -> None:
        long = "word " * (INLINE_CHARS // 4)
        await setup.send(commit(1, long), commit(2, long))
        await setup.send(cancels=(1,))
        await setup.send(streamed(1))  # the id is free again
        assert len(setup.link.handlers) == 1
        gate.set()
        while len(setup.link.handlers) < 2:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        assert len(setup.link.handlers) == 2
        await setup.send(cancels=(1, 2))
        assert sorted(setup.link.cancelled) == [100, 101]

    run(shipped, body)


def test_a_session_owns_its_requests_and_a_token_those_of_all_its_sessions(shipped) -> None:
    async def body(setup: Setup) -> None:
        domains = [b"", b"", b"one token", b"one token", b"another"]
        sessions = [Session(setup.shared, Caller(domain)) for domain in domains]
        for session in sessions:
            session._take(pb.ClientFrame(requests=[commit(1), commit(2)]))
        owners = setup.link.owners
        assert owners[::2] == owners[1::2]
        assert owners[4] == owners[6]
        assert len({*owners}) == 4
        for session in sessions:
            session.close()

    run(shipped, body)


def test_http_requests_without_a_token_are_one_owners(shipped) -> None:
    """Each is a session: as owners they would take turns, and what is cached would not count."""

    async def body(setup: Setup) -> None:
        runs = Runs(setup.shared)
        waiting = [asyncio.create_task(runs.finals([commit(1)], Caller(domain)))
                   for domain in (b"", b"", b"one token", b"one token")]  # fmt: skip
        await settle()
        owners = setup.link.owners
        assert (owners[0], owners[2]) == (owners[1], b"one token")
        assert owners[2] == owners[3]
        assert owners[0] != b"one token"
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    run(shipped, body)


def test_a_session_that_is_over_is_freed_at_once(shipped: Tokenizer) -> None:
    """Not by the collector of cycles, which runs seldom: a busy server's memory would rise."""

    async def body(setup: Setup) -> None:
        runs = Runs(setup.shared)
        finished, failed = (runs.finals([commit(1)], Caller()) for _ in range(2))
        asked = [asyncio.create_task(each) for each in (finished, failed)]
        await settle()
        sessions = [
            weakref.ref(each) for each in setup.shared.sessions if each is not setup.session
        ]
        setup.link.handlers[100](wpb.Update(final=True))
        full = pb.Error(code=pb.ERROR_CODE_RESOURCE_EXHAUSTED)
        setup.link.handlers[101](wpb.Update(error=full))
        await asked[0]
        with pytest.raises(HttpError):
            await asked.pop()
        setup.link.handlers.clear()
        await settle()
        assert [each() for each in sessions] == [None, None]

    gc.disable()
    try:
        run(shipped, body)
    finally:
        gc.enable()


def test_in_flight_limit_counts_unfinished_requests_only(shipped: Tokenizer) -> None:
    async def body(setup: Setup) -> None:
        await setup.send(*[commit(i) for i in range(9)])
        (reply,) = (await setup.next_frame()).replies
        assert (reply.id, reply.error.code) == (8, pb.ERROR_CODE_RESOURCE_EXHAUSTED)
        setup.link.handlers[100](wpb.Update(final=True))
        await setup.send(commit(8))
        assert len(setup.link.handlers) == 9

    run(shipped, body)


def test_end_of_input_ends_the_stream_after_the_last_reply(shipped: Tokenizer) -> None:
    async def body(setup: Setup) -> None:
        await setup.send(commit(1))
        setup.frames.put_nowait(None)
        await settle()
        setup.link.handlers[100](wpb.Update(final=True))
        frames = [frame async for frame in setup.session.frames()]
        assert [reply.id for frame in frames for reply in frame.replies] == [1]

    run(shipped, body)


def test_large_messages_to_the_worker_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sgc.runtime.engine.worker.link.MAX_PART_BYTES", 200)
    message = wpb.StepInput(cancels=[7])
    message.requests.extend(wpb.WorkerRequest(id=i, tokens=[i] * 50) for i in range(9))
    parts = _parts(message)
    assert [request.id for part in parts for request in part.requests] == list(range(9))
    assert len(parts) == 4
    assert list(parts[-1].cancels) == [7]
    assert _parts(wpb.StepInput()) == []


class Panic(BaseException):
    """As a library in Rust raises it."""


@pytest.mark.parametrize("error", [RuntimeError("broken"), Panic("broken")])
def test_a_reply_that_cannot_be_made_ends_its_request_alone(error: BaseException) -> None:
    async def main() -> None:
        told: dict[int, list[wpb.Update]] = {1: [], 2: []}

        def broken(update: wpb.Update) -> None:
            if not update.HasField("error"):
                raise error
            told[1].append(update)

        process: Any = SimpleNamespace(process=None, socket=None)
        link = WorkerLink(process)
        link._send = lambda: None  # type: ignore[method-assign]
        for on_update in (broken, told[2].append):
            link.submit(wpb.WorkerRequest(), on_update)
        updates = [wpb.Update(id=i, new_ids=[5]) for i in (1, 2, 1, 2)]
        link._deliver(wpb.StepOutput(updates=updates))
        assert [each.error.code for each in told[1]] == [pb.ERROR_CODE_INTERNAL]
        assert type(error).__name__ in told[1][0].error.message
        assert list(link._next.cancels) == [1]
        assert [list(each.new_ids) for each in told[2]] == [[5], [5]]

    asyncio.run(main())


def test_a_question_to_the_worker_is_put_once_at_a_time() -> None:
    async def main() -> None:
        asked: _PendingQuery[int] = _PendingQuery()
        first = asked.ask()
        assert asked.take()
        second = asked.ask()
        assert not asked.take()
        assert asked.answer(1)
        assert (first.result(), second.done()) == (1, False)
        assert asked.take()
        assert not asked.answer(2)
        assert second.result() == 2

    asyncio.run(main())


def test_a_request_past_its_deadline_is_ended_in_the_engine(shipped: Tokenizer) -> None:
    """While it runs, and while it is tokenized; its wait counts."""

    async def body(setup: Setup) -> None:
        late, long, soon = commit(1), commit(2, "word " * INLINE_CHARS), commit(3)
        late.timeout_s = long.timeout_s = 1e-6
        soon.timeout_s = 1e6
        await setup.send(late, long, soon)
        errors = {}
        while len(errors) < 2:
            for reply in (await setup.next_frame()).replies:
                errors[reply.id] = reply.error
        assert {error.code for error in errors.values()} == {pb.ERROR_CODE_DEADLINE_EXCEEDED}
        assert sorted(errors) == [1, 2]
        assert setup.link.cancelled == [100]
        assert setup.shared.tally.expired == 2
        assert setup.shared.n_active == 1

    run(shipped, body)


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, float("nan")])
def test_a_time_that_is_none_is_refused(shipped: Tokenizer, timeout_s: float) -> None:
    async def body(setup: Setup) -> None:
        request = commit(1)
        request.timeout_s = timeout_s
        await setup.send(request)
        (reply,) = (await setup.next_frame()).replies
        assert reply.error.code == pb.ERROR_CODE_INVALID_ARGUMENT
        assert "timeout_s" in reply.error.message

    run(shipped, body)


def test_the_time_of_an_http_call_began_with_it(shipped: Tokenizer) -> None:
    async def body(setup: Setup) -> None:
        caller = Caller(timeout_s=60)
        caller.began_at -= 61
        session = Session(setup.shared, caller, b"http")
        reading = asyncio.create_task(session.read(_frames_of(commit(1))))
        replies = [reply async for frame in session.frames() for reply in frame.replies]
        assert [reply.error.code for reply in replies] == [pb.ERROR_CODE_DEADLINE_EXCEEDED]
        await reading
        session.close()

    run(shipped, body)


async def _frames_of(*requests: pb.Request) -> AsyncIterator[pb.ClientFrame]:
    yield pb.ClientFrame(requests=requests)


@pytest.mark.parametrize(
    ("asked", "token", "found"),
    [(None, None, 0), (-1, None, -1), (1, None, 0), (1, Quota(max_priority=1), 1),
     (None, Quota(priority=-1, max_priority=0), -1), (1, Quota(priority=-1, max_priority=0), 0)],
)  # fmt: skip
def test_a_request_has_at_most_the_priority_of_its_token(
    shipped: Tokenizer, asked: int | None, token: Quota | None, found: int
) -> None:
    async def body(setup: Setup) -> None:
        account = None if token is None else Account("a", token)
        session = Session(setup.shared, Caller(account=account))
        request = commit(1)
        if asked is not None:
            request.priority = asked
        wrong = commit(2)
        wrong.priority = 2
        await session.read(_frames_of(request, wrong))
        assert session._active[1].priority == found
        assert 2 not in session._active
        session.close()

    run(shipped, body)
