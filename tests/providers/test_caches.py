"""Twenty shapes of programs on caches that follow each vendor's rules: what a plan saves."""

from __future__ import annotations

import pytest
from providers.cache_models import (
    AnthropicCache,
    CacheApi,
    OpenAIAutomaticCache,
    OpenAIMarkedCache,
    VirtualClock,
)
from providers.cache_shapes import MODELS, RULES, SHAPES, TEXT, measure, single, words
from tests_support import one_in

import sgc
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.providers.backend import ProviderBackend
from sgc.runtime.executor.backends.providers.models.models import Choices, facts_for
from sgc.runtime.executor.backends.providers.wire.limits import LimitSettings

# Where nothing is asked twice, or the vendor's own rule is as good: all that is kept is what was
# asked last. At the others a plan saves more than a quarter of the best other way.
GROWING = {"chat of 6 turns", "chat of 30 turns", "agent loop", "branches"}
ALONE = {"a single call", "two calls, prefix under the floor", "long argument, 8 rows"}
AS_GOOD = {
    "anthropic": ALONE | GROWING,
    "openai-marked": ALONE | GROWING,
    "openai-automatic": ALONE
    | GROWING
    | {"completion that grows, no roles", "long system, changing tail, one by one"},
}
ROUNDING = 1.005  # counts are whole tokens


@pytest.mark.sweep
@pytest.mark.parametrize(("shape", "model"), one_in(4, [*SHAPES], [*MODELS]))
def test_a_plan_costs_no_more_than_any_other_way(shape, model):
    cost = measure(shape, model)
    best = min(cost.plain, cost.vendor)
    assert cost.placed <= ROUNDING * best
    if shape not in AS_GOOD[model]:
        assert cost.placed < 0.75 * best
    if shape not in ALONE:
        assert cost.placed < cost.plain


def test_there_are_twenty():
    assert len(SHAPES) == 20


def test_the_models_count_as_the_vendors_do():
    """What the arithmetic of fan-outs says of one cache: 10 at once cost 12.5, one first 2.15."""
    block = {"type": "text", "text": "x" * 37_000, "cache_control": {"type": "ephemeral"}}
    body = {"messages": [{"role": "user", "content": [block]}]}
    at_once, first = AnthropicCache(), AnthropicCache()
    for number in range(10):
        at_once.ask(body, now=0.0)
        first.ask(body, now=2.0 * number)
    assert at_once.bill.cost(1.25, 0.1) / 10_000 == pytest.approx(12.5)
    assert first.bill.cost(1.25, 0.1) / 10_000 == pytest.approx(2.15)
    first.ask(body, now=1000.0)
    assert first.bill.written == 20_000, "after 5 minutes it is gone"


def test_stable_beginnings_with_changing_ends_are_never_hit_without_marks():
    implicit = OpenAIMarkedCache()
    for number in range(5):
        text = "x" * 37_000 + str(number)
        implicit.ask({"messages": [{"role": "user", "content": text}]}, now=10.0 * number)
    assert implicit.bill.cached == 0


def test_a_key_used_too_often_goes_to_cold_machines():
    cache = OpenAIAutomaticCache()
    body = {"messages": [{"role": "user", "content": "x" * 37_000}], "prompt_cache_key": "k"}
    for number in range(20):
        cache.ask(body, now=2.0 * number)
    assert cache.bill.cached == 14 * 9984


def run_on(kept_by, model, program, reply=None, **options):
    clock = VirtualClock()
    api = CacheApi(kept_by, clock, reply)
    facts = facts_for("anthropic", model, Choices(**options))
    program(Endpoint(ProviderBackend(api, facts, LimitSettings(), clock=clock)))
    return api


def test_an_hour_is_asked_for_and_paid_for():
    api = run_on(AnthropicCache(), "claude-opus-5", SHAPES["fork of 8 on a text"], cache_ttl="1h")
    assert api.cache.bill.written_1h > 2000
    assert api.cache.bill.written == 0
    controls = [part["cache_control"] for part in api.bodies[0]["messages"][0]["content"]]
    assert controls == [{"type": "ephemeral", "ttl": "1h"}]


def test_an_hour_pays_later():
    """Two reads do not pay for a write of twice the price; a fork of two gets no mark then."""
    short = run_on(AnthropicCache(), "claude-opus-5", SHAPES["two calls, prefix over the floor"])
    assert short.cache.bill.written
    long = run_on(
        AnthropicCache(), "claude-opus-5", SHAPES["two calls, prefix over the floor"],
        cache_ttl="1h",
    )  # fmt: skip
    assert long.cache.bill.written_1h == 0


def at_once(body):
    """An agent that is done with its first act."""
    return "DONE, there is nothing to do"


def test_a_plan_that_hoped_for_more_loses_at_most_the_first_write():
    plain = run_on(AnthropicCache(), "claude-opus-5", SHAPES["agent loop"], at_once, cache="off")
    placed = run_on(AnthropicCache(), "claude-opus-5", SHAPES["agent loop"], at_once)
    assert len(placed.bodies) == 1
    bill = placed.cache.bill
    assert bill.written > 1500
    lost = bill.cost(1.25, 0.1) - plain.cache.bill.cost(1.25, 0.1)
    assert 0 < lost <= 0.25 * bill.written


def test_interpreted_runs_and_o0_have_no_marks():
    def interpreted(endpoint):
        for _ in range(3):
            sgc.function(single.func, jit=False)("Hello?", backend=endpoint).sync()

    program = single.compile(opt_level=0)

    def plain(endpoint):
        for _ in range(3):
            program.run("Hello?", backend=endpoint)

    for run in (interpreted, plain):
        api = run_on(AnthropicCache(), "claude-opus-5", run)
        assert "cache_control" not in str(api.bodies)


def test_the_second_of_several_runs_writes_what_later_ones_read():
    program = single.compile()

    def run(endpoint):
        results = [program.run(words(40, f"row {i}"), backend=endpoint) for i in range(4)]
        used = [result.requests[0].usage for result in results]
        assert [bool(u.cache_written_tokens) for u in used] == [False, True, False, False]
        assert [bool(u.cached_tokens) for u in used] == [False, False, True, True]
        costs = [u.cost_usd for u in used]
        assert costs[1] > costs[0] > costs[2] == pytest.approx(costs[3])

    run_on(AnthropicCache(), "claude-opus-5", run)


def test_what_was_cached_is_in_the_runs_log(tmp_path):
    @sgc.function
    def fan(s, text: str):
        s += sgc.user(text)
        for number, part in enumerate(s.fork(3)):
            part += sgc.user(f"{number}?") + sgc.assistant(sgc.gen("a", max_tokens=64))

    path = tmp_path / "run.log"

    def run(endpoint):
        with sgc.RunLog.open(str(path)) as log:
            result = fan.compile().run(TEXT, backend=endpoint, log=log)
        assert result.stats.cached_tokens == 2 * result.stats.cache_written_tokens

    run_on(AnthropicCache(), "claude-opus-5", run)
    assert '"cache_written_tokens"' in path.read_text()


def test_a_text_of_white_space_is_never_cut_off():
    """APIs refuse a block of white space: marks around one are left out, and its text is sent."""

    @sgc.function
    def program(s, text: str):
        s += sgc.user(RULES + "\n\n" + text + "\n")
        left, right = s.fork(2)
        left += sgc.user("\n" + "One?") + sgc.assistant(sgc.gen("a", max_tokens=64))
        right += sgc.user("Two?") + sgc.assistant(sgc.gen("a", max_tokens=64))

    def run(endpoint):
        for text in (" ", "\n", "x"):
            program(text, backend=endpoint).sync()

    api = run_on(AnthropicCache(), "claude-opus-5", run)
    for body in api.bodies:
        for message in body["messages"]:
            parts = message["content"]
            assert isinstance(parts, str) or all(part["text"].strip() for part in parts)
