"""Healed borders: which tokens are taken back, and that the text goes on from the prompt's."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest
from engine.generation.conftest import Rig
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples
from waiting import BOUND_S

from sgc.runtime.engine.guides.healing import MAX_TAKEN_BACK, Healer, healer_of
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.text.tokenizer import Text, Tokenizer
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import (
    FinishReason,
    Generated,
    LogprobsAsked,
    Prompt,
    Sampling,
    TextRun,
    TokenRun,
)

PROMPTS = [
    "The address is http:",
    "See https:/",
    "The quick brown fo",
    "unbeliev",
    "The answer is 42",
    "It is 3.",
    "A list: ",
    "Two spaces  ",
    "A line\n",
    "Two lines\n\n",
    "\tdef f(",
    "Hello, wor",
    'He said "',
    "naïv",
    "straß",
    "Приве",
    "你好，世",
    "नमस्",
    "مرح",
    "Smile 🙂",
    "🙂🙃",
    "👩‍👩‍👧",
    "e\u0301",
    "a",
    "h",
    " ",
    "\n",
    "x\x00",
    "\ufeff",
    "a \u200b",
    "." * 40,
    " " * 70,
    "aaaaaaaaaaaaaaaaaaaaaaaaaa",
]
GREEDY = Sampling(max_tokens=24, temperature=0.0, ignore_eos=True, heal=True)
Run = Callable[[EngineBackend], Awaitable[Any]]


@pytest.fixture(scope="module")
def real() -> Iterator[EmbeddedEngine]:
    with EmbeddedEngine("default", ["--max-context", "2048", "--pool-tokens", "20000"]) as engine:
        yield engine


@pytest.fixture(scope="module")
def healer(tokenizer: Tokenizer) -> Healer:
    found = healer_of(tokenizer)
    assert found is not None
    return found


def run(engine: EmbeddedEngine, work: Run) -> Any:
    async def main() -> Any:
        async with EngineBackend(engine.uri) as backend:
            return await asyncio.wait_for(work(backend), BOUND_S)

    return asyncio.run(main())


def ask(
    engine: EmbeddedEngine,
    prompts: Sequence[str | Prompt],
    samplings: Sampling | Sequence[Sampling],
) -> list[Generated]:
    async def work(backend: EngineBackend) -> list[Generated]:
        every = [samplings] * len(prompts) if isinstance(samplings, Sampling) else samplings
        runs = [(TextRun(p),) if isinstance(p, str) else p for p in prompts]
        pairs = zip(runs, every, strict=True)
        return list(await asyncio.gather(*(backend.generate(p, s) for p, s in pairs)))

    return run(engine, work)


# What is taken back


def by_hand(rig: Rig, ids: Sequence[int]) -> list[tuple[int, str]]:
    """Every token of the vocabulary is looked at."""
    tokens, found = rig.vocabulary.tokens, []
    for n in range(1, min(MAX_TAKEN_BACK, len(ids)) + 1):
        last = ids[-n:]
        if any(i in rig.tokenizer.special_ids for i in last):
            break
        data = b"".join(tokens[i] for i in last)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        if data and any(len(t) > len(data) and t.startswith(data) for t in tokens):
            found.append((n, text))
    return found[::-1]


@examples(150)
@given(data=st.data())
def test_against_a_look_at_the_whole_vocabulary(rig: Rig, healer: Healer, data) -> None:
    texts = st.text("ab the:/.1 \n🙂é你h", max_size=12) | st.sampled_from(PROMPTS)
    some = st.lists(st.integers(0, rig.tokenizer.vocab_size - 1), max_size=10)
    ids = data.draw(some) + rig.ids(data.draw(texts))
    cut = data.draw(st.integers(0, len(ids)))
    for part in (ids, ids[:cut]):
        assert healer.taken_back(part) == by_hand(rig, part)


def test_every_prompt_here(rig: Rig, healer: Healer) -> None:
    found = [healer.taken_back(rig.ids(prompt)) for prompt in PROMPTS]
    assert found == [by_hand(rig, rig.ids(prompt)) for prompt in PROMPTS]
    most = [each[0][0] if each else 0 for each in found]
    assert most.count(0) > 2
    assert most.count(1) > 5
    assert max(most) > 1


def test_specials_are_not_taken_back(tokenizer: Tokenizer, healer: Healer, rig: Rig) -> None:
    for special in tokenizer.special_ids:
        assert healer.taken_back([*rig.ids("http:"), special]) == []
        found = healer.taken_back(rig.ids("h"))
        assert healer.taken_back([special, *rig.ids("h")]) == found == [(1, "h")]


class Table:
    """A tokenizer of a few tokens, as a healer sees it."""

    tokens = (b" ", b"\xc3", b"\xa9", " éa".encode(), b"x", b"xyz", b"y")
    vocab_size = len(tokens)
    special_ids: frozenset[int] = frozenset()

    def __getitem__(self, i: int) -> bytes:
        return self.tokens[i]


def test_borders_are_those_of_characters() -> None:
    table: Any = Table()
    small = Healer(table, table)
    assert small.taken_back([0, 0, 1, 2]) == [(3, " é")]
    assert small.taken_back([1, 2]) == []
    assert small.taken_back([1]) == []
    assert small.taken_back([2, 0]) == [(1, " ")]
    assert small.taken_back([4, 6]) == [(2, "xy")]
    assert small.taken_back([4, 6, 4]) == [(1, "x")]
    assert small.taken_back([]) == []


# Through an engine


def kept_prompt(rig: Rig, prompt: str) -> tuple[list[int], str]:
    """The prompt's ids without those that are decided anew, and the text of these."""
    ids = rig.tokenizer.encode_prompt([Text(prompt)])
    healer = healer_of(rig.tokenizer)
    assert healer is not None
    found = (each for each in healer.taken_back(ids) if each[0] < len(ids))
    n, text = next(found, (0, ""))
    return ids[: len(ids) - n], text


def spoken(rig: Rig, ids: Sequence[int]) -> bytes:
    return b"".join(rig.vocabulary.tokens[i] for i in ids)


def assert_joined(rig: Rig, prompt: str, found: Generated) -> None:
    """The prompt and what follows it are the text of all ids."""
    kept, taken = kept_prompt(rig, prompt)
    text = spoken(rig, [*kept, *found.ids]).decode("utf-8", "replace")
    assert text == prompt + found.text
    if taken:
        assert spoken(rig, found.ids).startswith(taken.encode())
    shown = found.head + spoken(rig, found.kept_ids).decode("utf-8", "replace") + found.tail
    assert shown == found.text
    assert found.ids[len(found.ids) - len(found.kept_ids) :] == found.kept_ids or found.tail


@pytest.mark.sweep
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_prompt_and_text_are_the_text_of_all_ids(
    rig: Rig, real: EmbeddedEngine, temperature
) -> None:
    samplings = [
        Sampling(24, temperature=temperature, seed=i, ignore_eos=True, heal=True)
        for i in range(len(PROMPTS))
    ]
    n_healed = 0
    for prompt, found in zip(PROMPTS, ask(real, PROMPTS, samplings), strict=True):
        assert_joined(rig, prompt, found)
        assert len(found.ids) == 24
        n_healed += bool(kept_prompt(rig, prompt)[1])
        n_prompt = len(kept_prompt(rig, prompt)[0])
        assert n_prompt <= found.usage.prompt_tokens <= n_prompt + 24
    assert n_healed >= 8


def test_what_is_not_healed_is_as_without(rig: Rig, real: EmbeddedEngine) -> None:
    plain = Sampling(24, temperature=0.0, ignore_eos=True)
    calm = [prompt for prompt in PROMPTS if not kept_prompt(rig, prompt)[1]]
    assert calm
    for a, b in zip(ask(real, calm, GREEDY), ask(real, calm, plain), strict=True):
        assert (a.text, a.ids, a.kept_ids, a.head) == (b.text, b.ids, b.kept_ids, "")


def test_healing_changes_what_is_said(rig: Rig, real: EmbeddedEngine) -> None:
    """Otherwise these tests say nothing."""
    plain = Sampling(24, temperature=0.0, ignore_eos=True)
    healed = [prompt for prompt in PROMPTS if kept_prompt(rig, prompt)[1]]
    found = zip(ask(real, healed, GREEDY), ask(real, healed, plain), strict=True)
    assert sum(a.text != b.text for a, b in found) > 3


def test_special_endings_and_generated_ids_are_left(rig: Rig, real: EmbeddedEngine) -> None:
    special = rig.tokenizer.backend.id_to_token(min(rig.tokenizer.special_ids))
    colon = tuple(rig.ids("http:"))
    prompts: list[Prompt] = [
        (TextRun(f"http:{special}"),),
        (TextRun("Go to "), TokenRun(colon, "http:")),
        (TokenRun(colon, "http:"),),
        (TextRun("Go to "), TokenRun(colon, "http:"), TextRun("")),
    ]
    plain = Sampling(24, temperature=0.0, ignore_eos=True)
    for a, b in zip(ask(real, prompts, GREEDY), ask(real, prompts, plain), strict=True):
        assert (a.text, a.ids, a.kept_ids, a.head) == (b.text, b.ids, b.kept_ids, "")


def test_no_further_back_than_the_last_run(rig: Rig, real: EmbeddedEngine) -> None:
    """What was generated stays, though a token could span it and the text after it."""
    ids = tuple(rig.ids("The address is htt"))
    prompt: Prompt = (TextRun("Well. "), TokenRun(ids, "The address is htt"), TextRun("p:"))
    (found,) = ask(real, [prompt], GREEDY)
    text = spoken(rig, found.ids).decode("utf-8", "replace")
    assert text.endswith(found.text)
    assert "p:".endswith(text[: len(text) - len(found.text)])


def test_literal_text_is_healed_too(rig: Rig, real: EmbeddedEngine) -> None:
    special = rig.tokenizer.backend.id_to_token(min(rig.tokenizer.special_ids))
    prompt: Prompt = (TextRun(f"a {special}", literal=((2, 2 + len(special)),)),)
    (found,) = ask(real, [prompt], GREEDY)
    text = spoken(rig, found.ids).decode("utf-8", "replace")
    assert text.endswith(found.text)
    assert special.endswith(text[: len(text) - len(found.text)])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_with_few_tokens(rig: Rig, real: EmbeddedEngine, n) -> None:
    """It may end within the prompt's own text; then it has said nothing."""
    sampling = Sampling(n, temperature=1.0, seed=n, ignore_eos=True, heal=True)
    for prompt, found in zip(PROMPTS, ask(real, PROMPTS, sampling), strict=True):
        kept, _ = kept_prompt(rig, prompt)
        text = spoken(rig, [*kept, *found.ids]).decode("utf-8", "replace")
        assert text == prompt + found.text or (
            found.text == "" and prompt.startswith(text.rstrip("\ufffd"))
        )
        assert (
            found.head + spoken(rig, found.kept_ids).decode("utf-8", "replace") + found.tail
            == found.text
        )
        assert found.finish_reason is FinishReason.LENGTH


def test_no_tokens_at_all(real: EmbeddedEngine) -> None:
    (found,) = ask(real, ["http:"], Sampling(max_tokens=0, heal=True))
    assert (found.text, found.ids, found.head, found.tail) == ("", (), "", "")


def test_what_is_streamed_is_the_text(rig: Rig, real: EmbeddedEngine) -> None:
    stops = ((), (":",), ("\n", ". "), (" the",))
    samplings = [
        Sampling(24, temperature=1.0, seed=i, heal=True, stop=stops[i % 4], ignore_eos=i % 2 == 0)
        for i in range(len(PROMPTS))
    ]
    deltas: list[list[str]] = [[] for _ in PROMPTS]

    async def work(backend: EngineBackend) -> list[Generated]:
        calls = zip(PROMPTS, samplings, deltas, strict=True)
        streams = [backend.generate((TextRun(p),), s, into.append) for p, s, into in calls]
        return list(await asyncio.gather(*streams))

    streamed = run(real, work)
    for plain, found, into in zip(ask(real, PROMPTS, samplings), streamed, deltas, strict=True):
        assert "".join(into) == found.text
        assert (plain.text, plain.ids, plain.kept_ids, plain.head, plain.tail, plain.matched) == (
            (found.text, found.ids, found.kept_ids, found.head, found.tail, found.matched)
        )


def test_a_stop_does_not_see_the_prompt_s_end(rig: Rig, real: EmbeddedEngine) -> None:
    prompts = ["http:", "The address is http:", "He said: ", "one, two,", "The end.", "A line\n"]
    for prompt in prompts:
        stop = prompt.rstrip(" ")[-1]
        samplings = [
            Sampling(30, temperature=1.0, seed=i, stop=(stop,), ignore_eos=True, heal=True)
            for i in range(6)
        ]
        for found in ask(real, [prompt] * 6, samplings):
            assert stop not in found.text
            if found.finish_reason is FinishReason.STOP:
                assert found.matched == stop
            kept, _ = kept_prompt(rig, prompt)
            text = spoken(rig, [*kept, *found.ids]).decode("utf-8", "replace")
            assert text.startswith(prompt + found.text)
            if found.finish_reason is FinishReason.STOP:
                assert text[len(prompt) + len(found.text) :].startswith(stop)
                assert len(found.ids) <= 30
            assert (
                found.head + spoken(rig, found.kept_ids).decode("utf-8", "replace") + found.tail
                == found.text
            )


def test_stop_patterns_do_not_either(rig: Rig, real: EmbeddedEngine) -> None:
    for prompt, pattern in (("http:", "[:/]+"), ("It is 3.", r"\d?\."), ("one, two,", ",.")):
        samplings = [
            Sampling(30, temperature=1.0, seed=i, stop_regex=(pattern,), ignore_eos=True, heal=True)
            for i in range(6)
        ]
        for found in ask(real, [prompt] * 6, samplings):
            assert re.search(pattern, found.text) is None or found.matched
            kept, _ = kept_prompt(rig, prompt)
            text = spoken(rig, [*kept, *found.ids]).decode("utf-8", "replace")
            assert text.startswith(prompt + found.text)
            if found.finish_reason is FinishReason.STOP:
                assert re.fullmatch(pattern, str(found.matched))
                assert text[len(prompt + found.text) :].startswith(str(found.matched))


def test_what_was_healed_is_cached_for_what_follows(rig: Rig, real: EmbeddedEngine) -> None:
    """The healed tokens are those that the joined text is tokenized to, in most cases."""
    found = ask(real, PROMPTS, GREEDY)
    more: list[Prompt] = []
    for prompt, each in zip(PROMPTS, found, strict=True):
        kept = spoken(rig, each.kept_ids).decode()
        after = (TextRun(each.tail + " and"),)
        more.append((TextRun(prompt + each.head), TokenRun(each.kept_ids, kept), *after))
    n_good = 0
    for prompt, each, next_ in zip(
        PROMPTS, found, ask(real, more, Sampling(1, temperature=0.0)), strict=True
    ):
        n_known = len(kept_prompt(rig, prompt)[0]) + len(each.ids)
        n_good += next_.usage.cached_tokens >= n_known - 2
    assert n_good >= 0.7 * len(PROMPTS), n_good


@pytest.mark.parametrize(
    ("prompt", "pattern"),
    [
        ("The address is http:", r"//[a-z]{3,9}\.(?:com|org)"),
        ("The address is http:", r"[^/][a-z]{0,9}"),
        ("http:", "//example"),
        ("It is 3.", r"\d{2,4}"),
        ("The quick brown fo", "x(?:es)? ju?mps?"),
        ("A list: ", r"\[(?:\d(?:, \d){0,3})?\]"),
        ("Smile 🙂", "🙂{1,2}!"),
        ("A line\n", r"\n?[a-z ]{3,12}\n"),
        ("nothing:", ""),
        ('He said "', '[^"]{1,20}"'),
    ],
)
def test_with_a_regex(rig: Rig, real: EmbeddedEngine, prompt, pattern) -> None:
    samplings = [
        Sampling(40, temperature=float(i % 2), seed=i, regex=pattern, heal=True) for i in range(6)
    ]
    endings = []
    for found in ask(real, [prompt] * 6, samplings):
        endings.append(found.finish_reason)
        if found.finish_reason is FinishReason.STOP:
            assert re.fullmatch(pattern, found.text)
        kept, _ = kept_prompt(rig, prompt)
        text = spoken(rig, [*kept, *found.ids]).decode("utf-8", "replace")
        assert text == prompt + found.text
        assert (
            found.head + spoken(rig, found.kept_ids).decode("utf-8", "replace") + found.tail
            == found.text
        )
    assert FinishReason.STOP in endings


def test_with_json(rig: Rig, real: EmbeddedEngine) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"enum": ["x", "yy"]}, "b": {"type": "boolean"}},
        "required": ["a", "b"],
    }
    for prompt in ("JSON: ", "JSON:", "```json\n", "{", "It is"):
        samplings = [
            Sampling(60, temperature=1.0, seed=i, json_schema=json.dumps(schema), heal=True)
            for i in range(4)
        ]
        for found in ask(real, [prompt] * 4, samplings):
            assert found.finish_reason is FinishReason.STOP
            assert json.loads(found.text).keys() == {"a", "b"}
            assert found.usage.forced_tokens > 0


def test_with_log_probabilities(rig: Rig, real: EmbeddedEngine) -> None:
    """Those of the healed tokens are the prompt's, which they are a part of."""
    asked = Sampling(
        9, temperature=0.0, ignore_eos=True, heal=True, logprobs=LogprobsAsked(0, 2, text=True)
    )
    for prompt, found in zip(PROMPTS, ask(real, PROMPTS, asked), strict=True):
        assert found.logprobs is not None
        kept, _ = kept_prompt(rig, prompt)
        healed = list(found.ids[: len(found.ids) - len(found.kept_ids)])
        assert [i for _, i, _ in found.logprobs.input] == [*kept, *healed]
        assert [i for _, i, _ in found.logprobs.output] == list(found.kept_ids)
        assert found.usage.forced_tokens == 0


def test_as_one_of_many(rig: Rig, real: EmbeddedEngine) -> None:
    """In whatever company, and asked again when all is cached."""
    alone = [ask(real, [prompt], GREEDY)[0] for prompt in PROMPTS[:12]]
    together = ask(real, PROMPTS[:12] * 2, GREEDY)
    n_alike = sum(a.ids == b.ids for a, b in zip(alone * 2, together, strict=True))
    assert n_alike >= 22  # logits may differ in their last bits
