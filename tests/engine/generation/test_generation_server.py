"""All that a generation can ask, over the wire; and that nobody can disturb the others by it."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from engine.generation.conftest import Rig
from jsonschema import Draft202012Validator
from waiting import BOUND_S, cpu_below, cpu_s, until_async

from sgc.errors import BackendError, SgcError
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import (
    FinishReason,
    Generated,
    LogprobsAsked,
    Prompt,
    Sampling,
    TextRun,
)

HELLO: Prompt = (TextRun("Hello"),)
GREEDY = Sampling(max_tokens=10, temperature=0.0)
Run = Callable[[EngineBackend], Awaitable[Any]]


def run(engine: EmbeddedEngine, work: Run, limit_s: float = BOUND_S) -> Any:
    async def main() -> Any:
        async with EngineBackend(engine.uri) as backend:
            return await asyncio.wait_for(work(backend), limit_s)

    return asyncio.run(main())


def ask(engine: EmbeddedEngine, *samplings: Sampling, prompt: Prompt = HELLO) -> list[Generated]:
    async def work(backend: EngineBackend) -> list[Generated]:
        return list(await asyncio.gather(*(backend.generate(prompt, s) for s in samplings)))

    return run(engine, work)


def ask_streamed(engine: EmbeddedEngine, sampling: Sampling) -> tuple[Generated, list[str]]:
    deltas: list[str] = []

    async def work(backend: EngineBackend) -> Generated:
        return await backend.generate(HELLO, sampling, deltas.append)

    return run(engine, work), deltas


# What can be asked


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


def holds(given: dict[str, str], text: str) -> bool:
    if "json_schema" in given:
        return Draft202012Validator(json.loads(given["json_schema"])).is_valid(json.loads(text))
    known = {'root ::= ("a" | "b") "-" [0-9]': "[ab]-[0-9]", 'start: "x" /[yz]{2}/': "x[yz]{2}"}
    return re.fullmatch(known.get(given.get("ebnf", ""), given.get("regex", "")), text) is not None


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


# What is refused


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"min_tokens": 11}, r"min_tokens \(11\) is larger than max_tokens \(10\)"),
    ({"regex": "a", "stop_regex": ("b",)}, "stop_regex and a constraint are both given"),
    ({"json_schema": "{}", "stop_regex": ("b",)}, "stop_regex and a constraint are both given"),
    ({"regex": "a", "json_schema": "{}"}, "regex and json_schema are both given"),
    ({"regex": "a", "ebnf": 'start: "a"'}, "both given"),
    ({"regex": "[ab]{500}"}, "max_tokens is 10, but a text .* has 500 characters at least"),
    ({"stop": ("x" * 100_000,)}, "bytes in a stop string: 100000, of at most 4096"),
    ({"stop": tuple(f"x{i}" for i in range(10_000))}, "stop strings: 10000, of at most 64"),
    ({"stop": ("",)}, "a stop string is empty"),
    ({"stop": ("\ud800",)}, "lone surrogate"),
    ({"regex": "\ud800"}, "lone surrogate"),
    ({"logprobs": LogprobsAsked(top=10**6)}, "top_logprobs_num: 1000000, of at most 100"),
    ({"logprobs": LogprobsAsked(top=-1)}, "out of range"),
    ({"logprobs": LogprobsAsked(start=-1)}, "out of range"),
    ({"logit_bias": ((10**6, 1.0),)}, "logit_bias: token id 1000000 is not below"),
    ({"logit_bias": ((-1, 1.0),)}, "out of range"),
    ({"logit_bias": ((5, float("nan")),)}, "a logit bias must be in .* found nan"),
    ({"logit_bias": ((5, float("inf")),)}, "a logit bias must be in .* found inf"),
    ({"logit_bias": ((5, 1001.0),)}, "a logit bias must be in .* found 1001"),
    ({"logit_bias": tuple((i, 1.0) for i in range(1025))}, "logit biases: 1025, of at most 1024"),
    ({"regex": "(?=a)b"}, "looks ahead or behind"),
    ({"regex": "("}, "is invalid"),
    ({"regex": "a" * 9000}, "has 9000 characters, of at most 8192"),
    ({"regex": r"[^\s\S]"}, "nothing can satisfy the constraint"),
    ({"json_schema": "false"}, "allows nothing"),
    ({"json_schema": "{"}, "is no JSON"),
    ({"json_schema": ""}, "is no JSON"),
    ({"json_schema": '{"minimum": 3, "maximum": 1, "type": "integer"}'}, "minimum .3. is greater"),
    ({"json_schema": '{"$ref": "http://127.0.0.1:1/"}'}, "does not fetch"),
    ({"json_schema": '{"const": "a constant that takes more tokens"}', "max_tokens": 4}, "forces"),
    ({"ebnf": "start: nope"}, "nope"),
    ({"ebnf": 'root ::= "a'}, "EBNF grammar is invalid"),
    ({"ebnf": ""}, "cannot be used"),
]
REFUSED.append(({"ebnf": "root ::= b"}, "^the EBNF grammar is invalid.*'b' not found"))
BAD_STOPS: list[tuple[tuple[str, ...], str]] = [
    (("a*",), "matches the empty text"),
    (("(",), "is invalid"),
    (("(?=a)b",), "looks ahead"),
    ((r"a\b",), "word boundary"),
    (("^a",), "anchor"),
    (tuple(f"a{i}" for i in range(100)), "1 to 16 stop patterns, found 100"),
    (("a" * 20_000,), "16384"),
    ((r"[^\s\S]",), "can never match"),
]


def assert_refused(engine: EmbeddedEngine, more: dict[str, Any], reason: str) -> None:
    """At once, and the next request of the same session is answered."""

    async def work(backend: EngineBackend) -> None:
        expected = (await backend.generate(HELLO, GREEDY)).ids
        for on_delta in (None, lambda text: None):
            sampling = Sampling(**{"max_tokens": 10, **more})
            with cpu_below(1, cpu_of(engine)), pytest.raises(SgcError, match=reason):
                await backend.generate(HELLO, sampling, on_delta)
        assert (await backend.generate(HELLO, GREEDY)).ids == expected

    run(engine, work)


@pytest.mark.parametrize(("more", "reason"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_done_is_refused_at_once(engine: EmbeddedEngine, more, reason) -> None:
    assert_refused(engine, more, reason)


@pytest.mark.parametrize(("patterns", "reason"), BAD_STOPS, ids=lambda value: str(value)[:30])
def test_a_bad_stop_pattern_is_refused_at_once(engine: EmbeddedEngine, patterns, reason) -> None:
    assert_refused(engine, {"stop_regex": patterns}, reason)


def test_refusals_are_counted_and_leave_nothing(engine: EmbeddedEngine) -> None:
    bad = [
        Sampling(10, regex="("),
        Sampling(10, json_schema="false"),
        Sampling(10, regex="[^\\s\\S]"),
    ]

    async def work(backend: EngineBackend) -> tuple[Any, Any]:
        before = await backend.stats()
        calls = [backend.generate(HELLO, s) for s in bad * 5]
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(each, BackendError) for each in found)
        return before, await backend.stats()

    before, after = run(engine, work)
    assert after.refused_requests - before.refused_requests == 15
    assert after.failed_requests == before.failed_requests
    assert (after.running_requests, after.waiting_requests, after.in_flight_requests) == (0, 0, 0)


# What must not end the engine


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


def cpu_of(engine: EmbeddedEngine) -> Callable[[], float]:
    return lambda: cpu_s(engine.pid or 0)


@pytest.mark.parametrize("field", ["regex", "stop_regex", "pattern"])
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
