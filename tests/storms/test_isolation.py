"""No token's client finds, or can tell from times, what another token's client has asked for."""

from __future__ import annotations

import asyncio
import random

import pytest
from storms.conftest import TOKENS
from storms.harness import Server
from storms.isolation import auc, interval, lookups, names, tells, timings

MANY = ("--max-context", "4096", "--pool-tokens", "2000000")


def test_no_look_up_finds_what_another_token_cached(storm_server: Server) -> None:
    found = asyncio.run(lookups(storm_server, TOKENS, 150))
    assert found["lookups"] == 150
    assert found["hits"] == 0
    assert found["hits_of_its_own"] == 1


def test_a_classifier_that_is_told_something_is_seen() -> None:
    rng = random.Random(1)
    same = [rng.random() for _ in range(1600)]
    assert auc([1, 2], [3, 4]) == 1
    assert auc([1, 3], [1, 3]) == 0.5
    assert not tells({"interval": interval(same[:800], same[800:], 100)})
    assert tells({"interval": interval([x - 0.1 for x in same], same, 100)})


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_is_told_across_tokens() -> None:
    tokens = names(60)
    with Server("fake", MANY, tokens) as server:
        found = asyncio.run(lookups(server, tokens, 20_000))
        assert (found["hits"], found["hits_of_its_own"]) == (0, 1)
        own = asyncio.run(timings(server, tokens[0], tokens[0], 100))
        assert own["interval"][0] > 0.6
        others = asyncio.run(timings(server, tokens[0], tokens[1], 600))
        low, high = others["interval"]
        assert low < 0.55  # on a machine with others on it the interval is wide
        assert high > 0.45
