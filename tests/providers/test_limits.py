"""Rate limits and budgets, on a clock that jumps; prices and what is shown of them."""

from __future__ import annotations

import asyncio
import json

import pytest
from providers.clocks import JumpingClock

import sgc
from sgc.errors import BudgetExceeded, UsageError
from sgc.runtime.executor.backends.providers.models.models import Choices, facts_for
from sgc.runtime.executor.backends.providers.models.prices import prices_of, read_prices
from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply
from sgc.runtime.executor.backends.providers.wire.fields import count
from sgc.runtime.executor.backends.providers.wire.limits import (
    Bucket,
    Budget,
    Limits,
    LimitSettings,
)
from sgc.runtime.executor.backends.providers.wire.reply import Replies, Spent
from sgc.runtime.executor.backends.providers.wire.retry import Attempts, Estimate
from sgc.runtime.executor.run.options import RunOptions


@sgc.function
def row(s, number: int):
    s += f"row {number}:" + sgc.gen("a", max_tokens=8, temperature=0)


def starts(n, tokens, *, used=None, **settings):
    """When each of n requests was sent, all asked for at once; each takes no time."""
    clock = JumpingClock()
    times = []

    async def once():
        times.append(clock.now())
        return Replies((), Spent(prompt=used or tokens))

    async def run():
        limits = Limits(LimitSettings(**settings), n, clock)
        attempts = Attempts(limits, lambda replies: 0.0)
        await asyncio.gather(*[attempts.send(once, Estimate(tokens), 0) for _ in range(n)])

    asyncio.run(run())
    return times


def most_in_a_minute(times):
    return max(sum(at <= each < at + 60 for each in times) for at in times)


def test_no_minute_has_more_requests_than_allowed():
    times = starts(250, 1, rpm=60)
    assert most_in_a_minute(times) <= 60
    assert times == sorted(times)
    assert 250 / 60 * 55 < times[-1] < 250 / 60 * 75


def test_no_minute_has_more_tokens_than_allowed():
    times = starts(100, 500, tpm=10_000)
    assert most_in_a_minute(times) <= 20
    assert times[-1] < 360


def test_guesses_are_corrected_by_usage():
    bucket = Bucket(6000, JumpingClock())
    assert bucket.take(600) == 0
    assert bucket.take(90) == pytest.approx(1.0)
    bucket.correct(600, 100)
    assert bucket.take(100) == 0


def test_a_request_larger_than_the_bucket_goes_when_that_is_full():
    assert starts(2, 50_000, tpm=10_000)[0] == 0


def test_requests_at_once_are_bounded(serve, ask):
    server = serve()
    endpoint = ask(server, "gpt-4o", max_concurrency=3)
    row.run_batch([{"number": n} for n in range(40)], backend=endpoint)
    assert server.n_most <= 3


# -- money --------------------------------------------------------------------------------


def test_a_budget_waits_for_what_is_under_way_and_then_ends():
    async def run():
        budget = Budget(1.0)
        await budget.hold(0.6)
        waiting = asyncio.ensure_future(budget.hold(0.6))
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.settle(0.6, 0.1)  # it was cheaper than it might have been
        await waiting
        budget.settle(0.6, 0.6)
        with pytest.raises(BudgetExceeded, match=r"\$0.7000 of \$1"):
            await budget.hold(0.4)
        await budget.hold(0.2)

    asyncio.run(run())


def test_a_batch_stops_before_it_costs_more_than_allowed(serve, ask):
    usage = {"prompt_tokens": 1000, "completion_tokens": 8, "total_tokens": 1008}
    server = serve(usage=usage)
    price = 1000 * 2.5e-6 + 8 * 10e-6
    endpoint = ask(server, "gpt-4o", max_cost=20 * price, max_concurrency=8)
    states = row.run_batch([{"number": n} for n in range(200)], backend=endpoint)
    failed = [state.error() for state in states if state.error() is not None]
    n_done = len(server.answered)
    assert all(isinstance(error, BudgetExceeded) for error in failed)
    assert n_done == 200 - len(failed)
    # The server's count of tokens is far above the guess: what was in flight may go beyond.
    assert 20 <= n_done <= 20 + 8
    assert endpoint.backend.limits.budget.spent == pytest.approx(n_done * price)


@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5"])
def test_where_tokens_are_no_more_than_bytes_the_cap_holds(serve, ask, model):
    server = serve()
    endpoint = ask(server, model, max_cost=0.002, max_concurrency=16)
    states = row.run_batch([{"number": n} for n in range(150)], backend=endpoint)
    budget = endpoint.backend.limits.budget
    n_done = sum(state.error() is None for state in states)
    assert 0 < n_done < 150
    assert n_done == len(server.asks)
    assert 0.001 < budget.spent <= 0.002


def test_what_fails_midway_counts_with_all_it_might_have_cost(serve, ask):
    from providers.provider_server import Fault

    server = serve(fault=lambda ask: Fault("cut"))
    endpoint = ask(server, "gpt-4o", max_cost=0.0005)
    endpoint.backend.limits.clock = JumpingClock()
    error = row.run(number=1, backend=endpoint).error()
    assert isinstance(error, BudgetExceeded)
    assert 1 <= len(server.asks) < 5


def test_a_budget_needs_prices(serve, ask, tmp_path):
    server = serve()
    with pytest.raises(UsageError, match="--max-cost needs the prices of served"):
        ask(server, "served", max_cost=1)
    path = tmp_path / "prices.json"
    path.write_text('{"serv*": {"input": 1000000, "output": 0}}')
    endpoint = ask(server, "served", max_cost=1000, prices=path)
    result = row.run_once({"number": 1}, RunOptions(), endpoint)
    assert result.stats.cost_usd == pytest.approx(result.stats.prompt_tokens)


def test_costs_follow_cache_reads_writes_and_long_prompts():
    prices = facts_for("anthropic", "claude-haiku-5-5", Choices()).prices
    short = prices.cost(100_000, 60_000, 20_000, 10_000, 1000)
    each = 10_000 * 0.1 + 60_000 * 0.01 + 20_000 * 0.125 + 10_000 * 0.2 + 1000 * 0.5
    assert short == pytest.approx(each / 1e6)
    assert prices.cost(100_001, 0, 0, 0, 0) == pytest.approx(100_001 * 0.5 / 1e6)
    assert prices.ceiling(100, 10) >= prices.cost(100, 0, 100, 0, 10)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("[]", "must be an object"),
        ('{"a": 1}', "object of prices"),
        ('{"a": {"input": 1}}', "have no 'output'"),
        ('{"a": {"input": -1, "output": 1}}', "number of dollars"),
        ('{"a": {"input": 1, "output": 1, "typo": 1}}', "unknown 'typo'"),
    ],
)
def test_wrong_prices_are_told(tmp_path, text, words):
    path = tmp_path / "prices.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        read_prices(path, "a")


def test_usage_is_kept_and_summed(serve, ask):
    usage = {"input_tokens": 10, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 60,
             "cache_creation": {"ephemeral_1h_input_tokens": 20, "ephemeral_5m_input_tokens": 40},
             "output_tokens": 7, "output_tokens_details": {"thinking_tokens": 5}}  # fmt: skip
    endpoint = ask(serve(usage=usage), "claude-opus-5")
    result = _stable.run_once({}, RunOptions(), endpoint)
    stats = result.stats
    assert (stats.prompt_tokens, stats.cached_tokens, stats.computed_tokens) == (100, 30, 70)
    assert (stats.cache_written_tokens, stats.reasoning_tokens) == (60, 5)
    cost = (10 * 5 + 30 * 0.5 + 40 * 6.25 + 20 * 10 + 7 * 25) / 1e6
    assert stats.cost_usd == pytest.approx(cost)
    assert result.get_meta_info("a")["cache_written_tokens"] == 60


@pytest.mark.parametrize("value", [True, -1, 10**12, 1.5, "5"])
def test_what_counts_nothing_is_no_count(value):
    with pytest.raises(MalformedReply, match="counts n as"):
        count({"n": value}, "n")


CONTRADICTORY = [
    ("gpt-4o", {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details":
     {"cached_tokens": 500, "cache_write_tokens": 100}}, (600, 500, 100, 2)),
    ("gpt-4o", {"prompt_tokens": 5, "completion_tokens": 2, "completion_tokens_details":
     {"reasoning_tokens": 9}}, (5, 0, 5, 9)),
    ("claude-haiku-4-5", {"input_tokens": 10, "cache_read_input_tokens": 30, "output_tokens": 2,
     "cache_creation": {"ephemeral_1h_input_tokens": 20}}, (60, 30, 30, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("model", "usage", "counts"), CONTRADICTORY)
def test_a_sum_is_no_less_than_its_parts(serve, ask, model, usage, counts):
    """Some servers leave cached tokens or the reasoning out of their sums."""
    stats = _stable.run_once({}, RunOptions(), ask(serve(usage=usage), model)).stats
    told = (stats.prompt_tokens, stats.cached_tokens, stats.computed_tokens)
    assert (*told, stats.completion_tokens) == counts
    assert stats.hit_rate <= 1
    assert stats.cost_usd > 0


@sgc.function
def _stable(s):
    s += "x" + sgc.gen("a", max_tokens=16)


def test_the_table_is_whole():
    """Every entry can be read, has prices, and is the first that fits its own name."""
    from importlib import resources

    text = resources.files("sgc.runtime.executor.backends.providers.models")
    text = text.joinpath("models.json").read_text()
    table = json.loads(text)
    for provider in ("openai", "anthropic"):
        for entry in table[provider]["models"]:
            facts = facts_for(provider, entry["match"].rstrip("*"), Choices())
            assert facts.prices == prices_of(entry["prices"], entry["match"])
            assert set(facts.select) <= {"structured", "logit_bias", "check"}
    assert facts_for("openai", "ft:gpt-4o:us::1", Choices()).prices is None
    assert facts_for("openai", "gpt-99", Choices()).prices is None
    assert facts_for("openai", "gpt-99", Choices(like="gpt-4o")).prices
