"""What providers' caches are expected to hold, by their rules in the table of models."""

from __future__ import annotations

import pytest

import sgc
from sgc.predict.dry.dry_run import Row
from sgc.predict.dry.provider_meter import ProviderMeter
from sgc.predict.predict import Expecting, at_most, expected
from sgc.predict.targets import ProviderTarget
from sgc.runtime.executor.backends.providers.wire.lower import lower
from sgc.runtime.executor.interface.backend import RoleMark, Sampling, TextRun
from sgc.runtime.executor.interface.place import Place
from sgc.runtime.executor.run.options import RunOptions

ROWS = [Row(str(n), {"question": f"What of part {n}?"}) for n in range(4)]


@sgc.function
def asked(s, question: str):
    s += sgc.system("The handbook says: " + "Tea is made with water. " * 600)
    s += sgc.user(question)
    s += sgc.assistant(sgc.gen("answer", max_tokens=20))


def cached(model: str, texts: list[str]) -> list[int]:
    """Tokens of prompts, asked one after another, that are expected to be cached."""
    facts = ProviderTarget(model).facts
    meter = ProviderMeter(facts)
    found = []
    for text in texts:
        run = TextRun("USER:" + text + "\nASSISTANT:", roles=(
            RoleMark(0, 5, "user", True),
            RoleMark(5 + len(text), 6 + len(text), "user", False),
            RoleMark(6 + len(text), 16 + len(text), "assistant", True),
        ))  # fmt: skip
        lowered = lower((run,), Sampling(max_tokens=4), facts)
        found.append(meter.usage(Place(), lowered, 1).cached_tokens)
    return found


def test_openai_keeps_prefixes_from_1024_tokens_in_steps_of_128() -> None:
    per_token = ProviderTarget("openai:gpt-4o").facts.bytes_per_token
    long, short = "a" * int(1380 * per_token), "b" * int(900 * per_token)
    found = cached("openai:gpt-4o", [long + "x", long + "y", short + "x", short + "y", long + "z"])
    assert found == [0, 1280, 0, 0, 1280]


def test_anthropic_keeps_what_is_marked_alone() -> None:
    assert cached("anthropic:claude-sonnet-4-6", ["a" * 9000, "a" * 9000]) == [0, 0]


@pytest.mark.parametrize("model", ["openai:gpt-4o", "anthropic:claude-sonnet-4-6"])
def test_rows_that_begin_alike_are_expected_to_be_cheaper_and_at_most_are_not(model: str) -> None:
    target = ProviderTarget(model)
    graph = asked.compile(check=False).graph
    graph = target.planned(graph, [row.arguments for row in ROWS])
    found = expected(graph, ROWS, target, Expecting(RunOptions(seed=1))).total
    share = found.prompt_tokens // len(ROWS)
    assert 0.9 * share * (len(ROWS) - 1) < found.cached_tokens < share * len(ROWS)
    is_marked = model.startswith("anthropic")
    assert (found.cache_written_tokens > 0) == is_marked
    assert found.computed_tokens == found.prompt_tokens - found.cached_tokens
    most, prices = at_most(graph, ROWS, target, RunOptions(), 0), target.facts.prices
    assert prices is not None
    assert found.cost_usd is not None
    plain = prices.cost(found.prompt_tokens, 0, 0, 0, found.completion_tokens)
    assert found.cost_usd < 0.7 * plain
    rate = most.money / prices.cost(int(most.prompt_tokens), 0, 0, 0, int(most.completion_tokens))
    assert (rate > 1.2) == is_marked
