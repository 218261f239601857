"""Hostile and slow clients hold nothing afterwards, and a healthy one is served beside them."""

from __future__ import annotations

import asyncio

import pytest
from attacks import Target, discard
from storms.attackers import ATTACKS
from storms.harness import Server
from storms.hostile import Healthy, Times, hostile_storm, running

MOST_MIB = 600.0


def test_a_healthy_client_is_served_beside_garbage_and_resets(storm_server: Server) -> None:
    server, times = storm_server, Times()

    async def main() -> None:
        target = Target(server.http, server.grpc)
        attacks = [asyncio.create_task(ATTACKS[name](target)) for name in ("garbage", "resets")]
        await Healthy(server, server.token).asks(times, rate=20, seconds=0.3)
        for each in attacks:
            each.cancel()
        await asyncio.gather(*attacks, return_exceptions=True)
        await server.idle()

    asyncio.run(main())
    assert not times.failed
    assert {kind: len(x) for kind, x in times.seconds.items()} == {
        "grpc": 6,
        "http": 6,
        "refused": 6,
    }


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ATTACKS)
def test_a_healthy_client_is_served_beside(name: str) -> None:
    """How long it waits is measured by `benches/stability.py hostile`."""
    tokens = ("right", "another") if name == "wrong tokens" else ()
    with running(discard) as nowhere, Server("fake", tokens=tokens) as server:
        found = hostile_storm(server, name, nowhere, rounds=1, seconds=3, rate=10)
    assert not found["failed"]
    assert found["most_mib"] - found["mib_before"] < MOST_MIB
