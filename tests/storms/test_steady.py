"""Memory is flat under steady load, and under twice what the server can do; refusals say so."""

from __future__ import annotations

import asyncio
import random

import pytest
from storms.harness import Server
from storms.overload import FACES, overload
from storms.steady import growing, slope, soak

SMALL = ("--max-context", "4096", "--pool-tokens", "40000", "--max-running", "8")


def test_a_slope_is_told_from_noise() -> None:
    rng = random.Random(1)
    times = [2.0 * i for i in range(300)]
    flat = slope(times, [100 + rng.random() for _ in times])
    steep = slope(times, [100 + rng.random() + t / 60 for t in times])
    assert flat["interval"][0] < 0 < flat["interval"][1]
    assert 0.9 < steep["interval"][0] < 1 < steep["interval"][1] < 1.1
    assert growing({"a": flat, "b": steep}, "x") == [f"x b: {steep['mib_a_minute']} MiB a minute, "
                                                     f"{steep['interval']}"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("face", FACES)
def test_overload_is_refused_as_retryable_and_the_queue_is_bounded(face: str) -> None:
    with Server("fake", (*SMALL, "--max-waiting", "16")) as server:
        found = asyncio.run(overload(server, 24.0, 2, 64, n_clients=24, face=face))
    assert not found["wrong"]
    assert found["outcomes"]["429" if face == "HTTP" else "RESOURCE_EXHAUSTED"] > 10
    assert found["most_waiting"] <= 16
    assert found["share_of_peak"] > 0.5  # a busy machine is no cliff


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_minute_of_mixed_traffic_is_served() -> None:
    with Server("fake") as fake, Server(None) as small:
        servers = {"fake": (fake, 40.0), "sgc-tiny": (small, 4.0)}
        found = asyncio.run(soak(servers, seconds=60.0, warm_s=10.0))
    for each in found.values():
        assert not each["wrong"]
        assert each["tokens_not_freed"] == 0
