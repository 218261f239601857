"""Clients that give up leave nothing behind: no page, record, session, task, descriptor, thread."""

from __future__ import annotations

import asyncio

import pytest
from storms.abort import abort_storm, problems
from storms.conftest import TOKENS
from storms.harness import Server

SHORT_MIB = 64.0  # caches are still filling


def test_a_short_storm_of_aborts_leaves_nothing(storm_server: Server) -> None:
    found = asyncio.run(abort_storm(storm_server, 80, 40, tokens=TOKENS))
    assert not problems(found, SHORT_MIB)
    assert found["cancelled_there"] > 10


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("model", ["fake", None], ids=["fake", "small"])
def test_a_storm_of_aborts_leaves_nothing(model: str | None) -> None:
    n, warm_up = (10_000, 10_000) if model else (1500, 500)
    with Server(model) as server:
        storm = abort_storm(server, n, warm_up, model=model or "sgc-tiny")
        assert not problems(asyncio.run(storm), SHORT_MIB if model is None else 10.0)
