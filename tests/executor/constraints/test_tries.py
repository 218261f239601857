"""Replies that are asked for again: every try is counted and recorded."""

from __future__ import annotations

import asyncio

import pytest
from executor.free_backend import Free, ask

import sgc
from sgc.errors import UnsupportedParameter, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.run.options import RunOptions


def test_a_pattern_and_a_schema_cannot_both_be_checked():
    from sgc.runtime.executor.interface.backend import Sampling
    from sgc.runtime.executor.patterns.checked_constraints import plan_constraint

    capabilities = asyncio.run(Free("r").capabilities())
    with pytest.raises(UnsupportedParameter, match="at once"):
        plan_constraint(Sampling(1, regex="a", json_schema="{}"), capabilities)
    with pytest.raises(UsageError, match="regex must be a text"):
        plan_constraint(Sampling(1, regex=5), capabilities)  # type: ignore[arg-type]


def test_tries_that_were_thrown_away_are_counted_with_what_they_were_asked_with():
    backend = Free("no", "nor", "42")
    result = ask(backend, RunOptions(seed=1), regex="[0-9]+", temperature=0.0)
    assert [request.sampling for request in result.requests] == backend.samplings
    assert [request.sampling.temperature for request in result.requests] == [0.0, 1.0, 1.0]
    assert [request.is_used for request in result.requests] == [False, False, True]
    assert [request.reply.text for request in result.requests] == ["no", "nor", "42"]
    assert (result.stats.requests, result.stats.prompt_tokens) == (3, 30)
    assert result.stats.completion_tokens == 15
    meta = result.get_meta_info("x")
    assert (meta["prompt_tokens"], meta["completion_tokens"]) == (10, 5)


def test_meta_info_of_an_interpreted_run_is_that_of_the_used_reply():
    state = _digits.run(backend=Endpoint(Free("no", "42")))
    assert state["x"] == "42"
    assert state.get_meta_info("x")["completion_tokens"] == 5


@sgc.function
def _digits(s):
    s += "a" + sgc.gen("x", regex="[0-9]+")


def test_several_texts_are_recorded_with_their_own_seeds():
    backend = Free("no", "1", "2")
    result = ask(backend, RunOptions(n=2), regex="[0-9]+")
    assert [request.sampling for request in result.requests] == backend.samplings
    assert result["x"] == ["1", "2"]
    assert len(result.get_meta_info("x")) == 2
    plain = ask(Free("r"), RunOptions(n=3))
    assert len({request.sampling.seed for request in plain.requests}) == 3
