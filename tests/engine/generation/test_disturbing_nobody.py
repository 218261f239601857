"""Constraints that are hostile, cancelled or asked for often: nobody else is disturbed."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
from collections.abc import Iterator

import pytest
from engine.generation.asking import GREEDY, HELLO, ask, cpu_of, run
from engine.generation.conftest import Rig
from waiting import BOUND_S, cpu_below, until_async

from sgc.errors import BackendError
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import (
    FinishReason,
    Generated,
    LogprobsAsked,
    Sampling,
    TextRun,
)


@pytest.fixture
def own() -> Iterator[EmbeddedEngine]:
    """An engine that may die of a test."""
    with EmbeddedEngine("fake", ["--max-context", "8192"]) as running:
        yield running


def test_a_whole_text_without_a_way_on_and_log_probabilities(own: EmbeddedEngine, rig: Rig) -> None:
    """The text is whole, may not end yet, and its only way on is a stop token."""
    b = rig.ids("b")[0]
    sampling = Sampling(
        9, min_tokens=5, stop_token_ids=(b,), regex="[xy]b?", logprobs=LogprobsAsked()
    )
    (found,) = ask(own, sampling)
    assert found.text in ("x", "y")
    assert found.logprobs is not None
    assert len(found.logprobs.output) == len(found.ids) == 1
    assert ask(own, GREEDY)[0].ids


def hostile(n: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)

    def nested() -> str:
        pattern = rng.choice(["a", "[ab]", r"\w", ".", "(?:a|ab)"])
        for _ in range(rng.randint(2, 8)):
            pattern = f"(?:{pattern}){rng.choice(['*', '+', '?', '*?', '{1,9}', '{2,}'])}"
        return pattern

    def counted() -> str:
        pattern = rng.choice(["a", "ab|c", r"\d", "[a-f]x?", r"\w"])
        for _ in range(rng.randint(2, 4)):
            pattern = f"(?:{pattern}){{{rng.randint(0, 9)},{rng.randint(9, 999)}}}"
        return pattern

    def chain() -> str:
        return "".join(
            f"[a-z]{{0,{rng.randint(1, 500)}}}{rng.choice('abc')}"
            for _ in range(rng.randint(1, 60))
        )

    def alternation() -> str:
        words = ("".join(rng.choices("abcdef", k=rng.randint(1, 9))) for _ in range(800))
        return rng.choice(["", "(?i)"]) + "|".join(words)

    def stars() -> str:
        words = ("".join(rng.choices("abcdef", k=3)) for _ in range(rng.randint(1, 200)))
        return "(?:" + "|".join(f"{word}.*" for word in words) + ")*z"

    def exponential() -> str:
        return f"(?:a|b)*a(?:a|b){{{rng.randint(5, 60)}}}c"

    def deep() -> str:
        depth = rng.randint(10, 3000)
        return rng.choice(["(", "(?:", "(a|"]) * depth + "x" + ")" * depth

    def classes() -> str:
        parts = rng.choices(
            [r"\w", r"\W", r"\s", r"\D", r"[^\W\d]", "[é-힣]"], k=rng.randint(1, 60)
        )
        flag = rng.choice(["", "(?i)"])
        return flag + "".join(part + rng.choice(["", "+", "?", "{0,30}", "*"]) for part in parts)

    def soup() -> str:
        return "".join(rng.choices(r"ab.*+?()[]{}|^$\,2wdé", k=rng.randint(1, 40)))

    kinds = [nested, counted, chain, alternation, stars, exponential, deep, classes, soup]
    for i in range(n):
        yield kinds[i % len(kinds)]()


def longest_gap(times: list[float]) -> float:
    return max(b - a for a, b in itertools.pairwise(times))


@pytest.mark.slow
@pytest.mark.parametrize(
    "field",
    ["regex", *(pytest.param(f, marks=pytest.mark.slow) for f in ("stop_regex", "pattern"))],
)
def test_a_flood_of_hostile_patterns_disturbs_nobody(own: EmbeddedEngine, field) -> None:
    """Another client's stream goes on, word for word, and the engine answers rightly after it."""
    calm = Sampling(700, temperature=1.0, seed=1, ignore_eos=True)

    def sampling(i: int, pattern: str) -> Sampling:
        if field == "regex":
            return Sampling(30, seed=i, regex=pattern)
        if field == "stop_regex":
            return Sampling(30, seed=i, stop_regex=(f"q{pattern}",))
        schema = json.dumps({"type": "string", "pattern": pattern})
        return Sampling(30, seed=i, json_schema=schema)

    async def main() -> None:
        async with EngineBackend(own.uri) as quiet, EngineBackend(own.uri) as loud:
            expected = await quiet.generate(HELLO, calm)
            await quiet.flush_cache()
            clock = cpu_of(own)
            times = [clock()]
            stream = asyncio.create_task(
                quiet.generate(HELLO, calm, lambda text: times.append(clock()))
            )
            patterns = list(hostile(18, seed=4))
            calls = [loud.generate(HELLO, sampling(i, p)) for i, p in enumerate(patterns)]
            flood = asyncio.gather(*calls, return_exceptions=True)
            found = await asyncio.wait_for(flood, BOUND_S)
            result = await stream
            assert (result.text, result.ids) == (expected.text, expected.ids)
            assert longest_gap(times) < 2  # two cores compile and serve beside each other
            assert len(times) > 10  # pieces are merged where their reader is slow
            n_answered = 0
            for pattern, each in zip(patterns, found, strict=True):
                if isinstance(each, Generated):
                    n_answered += 1
                    is_whole = each.finish_reason is FinishReason.STOP and field == "regex"
                    if is_whole and len(each.text) < 24:
                        assert re.fullmatch(pattern, each.text)
                else:
                    assert isinstance(each, BackendError), each
            assert n_answered > 5
            again = await quiet.generate(HELLO, Sampling(40, seed=5, regex="(?:yes|no)!"))
            assert again.text in ("yes!", "no!")
            assert (await loud.generate(HELLO, calm)).ids == expected.ids
            stats = await quiet.stats()
            assert (stats.running_requests, stats.in_flight_requests) == (0, 0)

    asyncio.run(main())


async def is_idle(backend: EngineBackend) -> bool:
    return (await backend.stats()).in_flight_requests == 0


def test_cancels_while_it_is_compiled(own: EmbeddedEngine) -> None:
    async def main() -> None:
        async with EngineBackend(own.uri) as backend:
            for pause_s in (0.0, 0.002, 0.02):
                patterns = list(hostile(30, seed=int(pause_s * 1000)))
                calls = [
                    asyncio.create_task(backend.generate(HELLO, Sampling(30, regex=p)))
                    for p in patterns
                ]
                await asyncio.sleep(pause_s)
                for call in calls:
                    call.cancel()
                await asyncio.gather(*calls, return_exceptions=True)
            assert (await backend.generate(HELLO, Sampling(9, regex="abc"))).text == "abc"
            await until_async(lambda: is_idle(backend))
            assert (await backend.stats()).running_requests == 0

    asyncio.run(main())


def test_one_constraint_of_many_requests_is_compiled_once(engine: EmbeddedEngine) -> None:
    """And what some do with it is nothing to the others."""
    samplings = [Sampling(40, seed=i % 4, regex=r"[a-z]{2,5}(?: [a-z]{2,5}){3}") for i in range(80)]
    with cpu_below(5, cpu_of(engine)):
        found = ask(engine, *samplings)
    for i, each in enumerate(found):
        assert each.text == found[i % 4].text
    assert len({each.text for each in found}) == 4


def test_more_log_probabilities_than_a_reply_can_hold(engine: EmbeddedEngine) -> None:
    """They are refused at once, and others of the session go on."""
    text = " ".join(["dog", "cat"] * 1500)
    asked = LogprobsAsked(0, 100, text=True)

    async def work(backend: EngineBackend) -> None:
        other = asyncio.create_task(backend.generate(HELLO, Sampling(200, ignore_eos=True)))
        with pytest.raises(BackendError, match="log-probabilities: up to") as caught:
            await backend.generate((TextRun(text),), Sampling(1, logprobs=asked))
        assert not caught.value.retryable
        assert len((await other).ids) == 200

    run(engine, work)
