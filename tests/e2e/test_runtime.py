"""Engines of our own from Python: started, kept as default, replaced when they have died."""

from __future__ import annotations

import asyncio

import pytest

import sgc
from sgc.errors import EngineUnavailable, SgcError
from sgc.runs.endpoints import Runtime


@sgc.function
def program(s, x):
    s += x + sgc.gen("g", max_tokens=3)


@pytest.mark.slow
def test_a_default_engine_that_was_shut_down_is_replaced(default_engine: Runtime):
    """`default_engine` sets the cache folder that a new default engine finds its model in."""
    dead = Runtime("fake")
    sgc.set_default_backend(dead)
    try:
        assert program.run(x="a").text().startswith("a")
        dead.shutdown()
        assert program.run(x="a").text().startswith("a")
    finally:
        sgc.set_default_backend(None)


def test_a_run_on_a_dead_engine_is_one_error():
    dead = Runtime("fake")
    dead.shutdown()
    with pytest.raises(EngineUnavailable):
        program.run(x="a", backend=dead).text()


def test_async_runs_overlap_on_one_engine(fake_engine: Runtime):
    compiled = program.compile()

    async def main() -> list[str]:
        runs = (compiled.arun(x=f"{i}", backend=fake_engine, seed=1) for i in range(50))
        return [result.text() for result in await asyncio.gather(*runs)]

    texts = asyncio.run(main())
    assert [text[: len(str(i))] for i, text in enumerate(texts)] == [str(i) for i in range(50)]


def test_an_engine_that_cannot_start_says_why(tmp_path):
    with pytest.raises(SgcError, match=r"config\.json"):
        Runtime(str(tmp_path))
