"""All that a generation can ask, over the wire."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from engine.generation.asking import HELLO, ask, ask_streamed, holds, run
from engine.generation.conftest import Rig

from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import (
    FinishReason,
    Generated,
    LogprobsAsked,
    Sampling,
)


def test_a_bias(engine: EmbeddedEngine, rig: Rig) -> None:
    x = rig.ids("x")[0]
    for value in (1000.0, 500.0):
        for temperature in (0.0, 1.0):
            sampling = Sampling(6, temperature=temperature, logit_bias=((x, value),))
            (found,) = ask(engine, sampling)
            assert found.text == "xxxxxx"
    (free,) = ask(engine, Sampling(30, temperature=0.0, ignore_eos=True))
    banned = tuple((i, -1000.0) for i in set(free.ids))
    (found,) = ask(engine, Sampling(30, temperature=0.0, ignore_eos=True, logit_bias=banned))
    assert not set(found.ids) & set(free.ids)


STOPS = [("[,.]",), (r"\w[ ,]\w", "[.!?]"), (r"[aeiou]{2}",), (r"[^ ]+ ",), (r"(?i)[q-z]\W",)]


@pytest.mark.sweep
@pytest.mark.parametrize("patterns", STOPS, ids=str)
def test_stop_patterns_and_their_streams(engine: EmbeddedEngine, rig: Rig, patterns) -> None:
    """The text is that of the first match's end, cut where it starts, and so are the deltas."""
    n_stopped = 0
    for seed in range(10):
        sampling = Sampling(40, seed=seed, stop_regex=patterns, ignore_eos=True)
        found, deltas = ask_streamed(engine, sampling)
        (plain,) = ask(engine, sampling)
        assert (found.text, found.ids, found.matched) == (plain.text, plain.ids, plain.matched)
        assert "".join(deltas) == found.text
        whole = rig.text(found.ids)
        if found.finish_reason is FinishReason.LENGTH:
            assert found.text == whole
            assert not any(re.search(p, whole) for p in patterns)
            continue
        n_stopped += 1
        matched = str(found.matched)
        assert any(re.fullmatch(p, matched) for p in patterns)
        assert whole.startswith(found.text + matched)
        assert not any(re.search(p, whole[: len(found.text + matched) - 1]) for p in patterns)
        assert rig.text(found.kept_ids) + found.tail == found.text
    assert n_stopped > 2


def test_stop_strings_and_patterns_together(engine: EmbeddedEngine, rig: Rig) -> None:
    for seed in range(10):
        one = Sampling(40, seed=seed, stop=(",",), stop_regex=(r"[.\n]",), ignore_eos=True)
        (found,) = ask(engine, one)
        assert not re.search(r"[.,\n]", found.text)
        if found.finish_reason is FinishReason.STOP:
            assert found.matched in (",", ".", "\n")


def test_log_probabilities_with_texts(engine: EmbeddedEngine, rig: Rig) -> None:
    asked = LogprobsAsked(start=0, top=4, text=True)
    (found,) = ask(engine, Sampling(8, seed=3, ignore_eos=True, logprobs=asked))
    assert found.logprobs is not None
    prompt_ids = [i for _, i, _ in found.logprobs.input]
    assert rig.text(prompt_ids) == "Hello"
    assert found.logprobs.input[0][0] is None
    assert [i for _, i, _ in found.logprobs.output] == list(found.ids)
    shown = "".join(str(text) for _, _, text in found.logprobs.output)
    assert re.sub(r"<\|[a-z_]+\|>", "", shown) == found.text  # of special tokens, the names
    assert len(found.logprobs.output_top) == 8
    for (value, token, _), top in zip(
        found.logprobs.output, found.logprobs.output_top, strict=True
    ):
        assert top is not None
        values = [each[0] for each in top]
        assert len(top) == 4
        assert values == sorted(values, reverse=True)
        assert all(isinstance(each[2], str) for each in top)
        by_id = {each[1]: each[0] for each in top}
        assert value is not None
        assert by_id.get(token, value) == value
        assert value <= values[0]
    plain = LogprobsAsked(top=4)
    (other,) = ask(engine, Sampling(8, seed=3, ignore_eos=True, logprobs=plain))
    assert other.logprobs is not None
    assert other.logprobs.input == ()
    assert [each[:2] for each in other.logprobs.output] == [
        each[:2] for each in found.logprobs.output
    ]
    assert all(text is None for _, _, text in other.logprobs.output)


def test_log_probabilities_of_a_prompt_alone(engine: EmbeddedEngine) -> None:
    for start in (0, 1, 10):
        (found,) = ask(engine, Sampling(0, logprobs=LogprobsAsked(start=start, top=1)))
        assert (found.text, found.ids, found.finish_reason) == ("", (), FinishReason.LENGTH)
        n = max(0, found.usage.prompt_tokens - start)
        assert len(found.logprobs.input if found.logprobs else ()) == n


CONSTRAINED = [
    {"regex": r"(?:cat|dog) is [a-z]{3}\."},
    {"regex": r"\d{3}-[A-Z]{2}"},
    {"json_schema": '{"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}'},
    {"ebnf": 'root ::= ("a" | "b") "-" [0-9]'},
    {"ebnf": 'start: "x" /[yz]{2}/'},
]


@pytest.mark.parametrize("given", CONSTRAINED, ids=str)
def test_constraints(engine: EmbeddedEngine, rig: Rig, given) -> None:
    samplings = [Sampling(40, seed=i, temperature=float(i > 0), **given) for i in range(6)]
    plain = ask(engine, *samplings)
    for sampling, found in zip(samplings, plain, strict=True):
        assert found.finish_reason is FinishReason.STOP
        assert holds(given, found.text)
        assert found.usage.completion_tokens == len(found.ids)
        assert found.usage.forced_tokens <= len(found.ids)
        streamed, deltas = ask_streamed(engine, sampling)
        assert streamed.text == "".join(deltas) == found.text


@pytest.mark.parametrize("twice", ["ll", "ss"])
def test_a_stop_that_a_token_holds_twice(engine: EmbeddedEngine, rig: Rig, twice) -> None:
    """The text is cut at the first, so what is before the first must be whole."""
    (token,) = [i for i, text in enumerate(rig.vocabulary.tokens) if text == twice.encode()]
    pattern = f"x{twice[0]}{{1,4}}y?"
    for temperature in (0.0, 1.0):
        sampling = Sampling(
            9,
            temperature=temperature,
            regex=pattern,
            stop=(twice[0],),
            logit_bias=((token, 500.0),),
        )
        (found,) = ask(engine, sampling)
        if found.finish_reason is FinishReason.STOP:
            assert re.fullmatch(pattern, found.text), (found.text, found.ids)


def test_n_of_one_prompt(engine: EmbeddedEngine) -> None:
    more: list[dict[str, Any]] = [
        {"regex": "[a-z]{5}"},
        {"logprobs": LogprobsAsked(0, 1)},
        {"stop_regex": ("[.,]",)},
    ]
    for each in more:
        samplings = [Sampling(12, seed=i, **each) for i in range(5)]

        async def work(backend: EngineBackend, samplings=samplings) -> Any:
            return await backend.generate_n(HELLO, samplings)

        together = run(engine, work)
        assert [g.text for g in together] == [g.text for g in ask(engine, *samplings)]
        assert len({g.text for g in together}) > 2


def test_the_sums_of_forced_tokens(engine: EmbeddedEngine) -> None:
    async def work(backend: EngineBackend) -> tuple[Any, list[Generated], Any]:
        before = await backend.stats()
        samplings = [Sampling(40, seed=i, **CONSTRAINED[i % 5]) for i in range(10)]
        found = await asyncio.gather(*(backend.generate(HELLO, s) for s in samplings))
        return before, list(found), await backend.stats()

    before, found, after = run(engine, work)
    n_forced = sum(g.usage.forced_tokens for g in found)
    assert after.forced_tokens - before.forced_tokens == n_forced > 0
    n_tokens = sum(len(g.ids) for g in found)
    assert after.sampled_tokens - before.sampled_tokens == n_tokens
    assert after.completion_tokens - before.completion_tokens == n_tokens
