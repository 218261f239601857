"""Replies of short steps are sent together; what ends a request is sent at once."""

from __future__ import annotations

from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.requests.request import Update
from sgc.runtime.engine.worker.outgoing import HOLD_S, Outgoing


class Sent:
    """A channel that keeps what is sent, as (id, tokens, final), and a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.messages: list[list[tuple[int, list[int], bool]]] = []
        self.outgoing = Outgoing(self, clock=lambda: self.now)

    def send(self, message: wpb.StepOutput) -> None:
        self.messages.append([(u.id, list(u.new_ids), u.final) for u in message.updates])

    def step(self, *updates: Update, is_idle: bool = False, took_s: float = HOLD_S / 4) -> None:
        for update in updates:
            self.outgoing.add(update)
        self.outgoing.send(is_idle=is_idle)
        self.now += took_s


def token(request: int, *ids: int, final: bool = False) -> Update:
    return Update(request, ids, final)


def test_tokens_of_short_steps_are_one_update() -> None:
    sent = Sent()
    for i in range(6):
        sent.step(token(1, i), token(2, 10 + i))
    assert sent.messages == [
        [(1, [0], False), (2, [10], False)],
        [(1, [1, 2, 3, 4], False), (2, [11, 12, 13, 14], False)],
    ]
    sent.step(is_idle=True)
    assert sent.messages[2] == [(1, [5], False), (2, [15], False)]


def test_an_end_is_sent_at_once_and_in_order() -> None:
    sent = Sent()
    sent.step(token(1, 0))
    sent.step(token(1, 1))
    sent.step(token(1, 2, final=True), token(2, 7))
    assert sent.messages[1] == [(1, [1], False), (1, [2], True), (2, [7], False)]
    sent.step(token(2, 8))
    assert len(sent.messages) == 2


def test_long_steps_are_sent_one_by_one() -> None:
    sent = Sent()
    for i in range(3):
        sent.step(token(1, i), took_s=2 * HOLD_S)
    assert [message[0][1] for message in sent.messages] == [[0], [1], [2]]


def test_nothing_is_sent_where_nothing_is_said() -> None:
    sent = Sent()
    sent.step(is_idle=True)
    assert sent.messages == []


def test_of_a_cancelled_request_nothing_is_said() -> None:
    sent = Sent()
    sent.step(token(1, 0), token(2, 0))
    sent.step(token(1, 1), token(2, 1))
    sent.outgoing.drop(1)
    sent.step(token(2, 2), is_idle=True)
    assert sent.messages[1:] == [[(2, [1, 2], False)]]
