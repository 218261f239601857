"""Whatever bytes a client sends to whatever method, it gets a status, and others are served."""

from __future__ import annotations

import asyncio
import random

import pytest
from storms.fuzz import METHODS, filled, fuzz, problems, unknown_field
from storms.harness import Server

from sgc.proto import engine_pb2 as pb


def test_a_few_messages_of_all_kinds_are_answered(storm_server: Server) -> None:
    found = asyncio.run(fuzz(storm_server, 100, n_clients=6))
    assert not problems(found)


def test_messages_are_varied() -> None:
    rng = random.Random(1)
    made = [filled(pb.ClientFrame, rng) for _ in range(150)]
    kinds = {each.WhichOneof("kind") for frame in made for each in frame.requests}
    assert kinds == {"generate", "score", "commit", "prefetch", "embed", None}
    assert max(frame.ByteSize() for frame in made) > 20_000
    whole = pb.ClientFrame.FromString(made[0].SerializeToString() + unknown_field(rng))
    assert whole.ByteSize() > made[0].ByteSize()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_thousand_messages_are_answered() -> None:
    with Server("program", ("--max-context", "512", "--pool-tokens", "20000", "--check")) as server:
        found = asyncio.run(fuzz(server, 10_000))
    assert not problems(found)
    assert set(found["statuses"]) == set(METHODS)
