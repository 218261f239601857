"""Replies on their way out: bounded frames, joined deltas, nothing lost or reordered."""

from __future__ import annotations

import pytest

from sgc.runtime.engine.server import outbox
from sgc.runtime.engine.server.outbox import Outbox


def test_frames_are_bounded_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_FRAME_REPLIES", 4)
    monkeypatch.setattr(outbox, "MAX_FRAME_BYTES", 100)
    box = Outbox()
    for i in range(1, 11):
        box.add(i).generated.text = "x" * (60 if i % 5 == 0 else 5)
    assert len(box) == 10
    frames = box.drain()
    assert [reply.id for frame in frames for reply in frame.replies] == list(range(1, 11))
    assert all(len(frame.replies) <= 4 and frame.ByteSize() <= 120 for frame in frames)
    assert len(box) == 0
    assert box.drain() == []


def test_unsent_deltas_of_a_request_are_joined_until_its_next_reply() -> None:
    box = Outbox()
    box.add_delta(1, "a")
    box.add_delta(2, "x")
    box.add_delta(1, "b")
    box.add(1).error.message = "no"
    box.add_delta(1, "c")
    (frame,) = box.drain()
    found = [(reply.id, reply.delta.text or reply.error.message) for reply in frame.replies]
    assert found == [(1, "ab"), (2, "x"), (1, "no"), (1, "c")]
