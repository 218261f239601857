"""Select against brute force: what a score says of each choice's tokens, beside what the plain
model says of the prompt and that choice, run by themselves; and what the methods make of it.

A tiny random Llama in float32, run by the real runner in a real core: requests come in batches,
with a cache that knows some of their prompts and choices, in steps too small for some tries and
pools too small for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
import transformers
from engine.core.runners import runner_of
from other_caches import CACHES

from sgc.runtime.engine.requests.request import EngineRequest, Generate, Score
from sgc.runtime.engine.step.core import EngineCore
from sgc.runtime.executor.interface.backend import ChoiceScore
from sgc.runtime.executor.interface.choice_methods import METHODS, pick

VOCAB = 97
TOLERANCE = 1e-4
Choice = tuple[int, ...]
Logprobs = npt.NDArray[np.float64]
SETTINGS: dict[str, dict[str, Any]] = {
    "room for all": {"pool_tokens": 4096, "chunk_tokens": 512},
    "small steps": {"pool_tokens": 4096, "chunk_tokens": 7},
    "small pool": {"pool_tokens": 170, "chunk_tokens": 4, "headroom_tokens": 1},
    "a list": {"pool_tokens": 1024, "chunk_tokens": 64, **CACHES["list"]},
    "no cache": {"pool_tokens": 1024, "chunk_tokens": 64, **CACHES["none"]},
}


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """For models as small as these, more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_model() -> torch.nn.Module:
    """The same weights each time."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCAB, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, max_position_embeddings=256,
        initializer_range=0.3, bos_token_id=None, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def make_core(settings: dict[str, Any]) -> EngineCore:
    runner = runner_of(make_model(), settings["pool_tokens"])
    return EngineCore(runner, max_context=200, vocab_size=VOCAB, check=True, **settings)


# -- brute force --


@cache
def plain_model() -> Any:
    model = make_model()
    model.set_attn_implementation("eager")
    return model


@torch.inference_mode()
def alone(prompt: Sequence[int], choice: Choice) -> Logprobs:
    """The log-probability of each of the choice's tokens that has something before it."""
    ids = torch.tensor([[*prompt, *choice]])
    logits = plain_model()(ids, use_cache=False).logits[0].double()
    first = max(len(prompt), 1)
    before = torch.log_softmax(logits, -1)[first - 1 : -1]
    found: Logprobs = before.gather(1, ids[0, first:, None])[:, 0].numpy()
    return found


# -- cases --


@dataclass(frozen=True)
class Case:
    prompt: tuple[int, ...]
    choices: tuple[Choice, ...]


def _tokens(rng: np.random.Generator, least: int, most: int) -> tuple[int, ...]:
    return tuple(rng.integers(0, VOCAB, int(rng.integers(least, most + 1))).tolist())


def make_choices(rng: np.random.Generator) -> tuple[Choice, ...]:
    """New ones, ones that begin as others do, beginnings of others, and the same ones again."""
    made, n_choices = [_tokens(rng, 1, 8)], int(rng.integers(1, 13))
    while len(made) < n_choices:
        other = made[int(rng.integers(len(made)))]
        n = int(rng.integers(1, len(other) + 1))
        kinds = [_tokens(rng, 1, 8), (*other[:n], *_tokens(rng, 0, 8))[:8], other[:n], other]
        made.append(kinds[int(rng.choice(4, p=[0.3, 0.45, 0.15, 0.1]))])
    return tuple(made[i] for i in rng.permutation(len(made)))


def make_cases(rng: np.random.Generator, n: int) -> list[Case]:
    """Prompts are new, go on from where others are, choices included, or are the same again."""
    cases: list[Case] = []
    for _ in range(n):
        prompt = _tokens(rng, 1, 60)
        if cases and rng.random() < 0.6:
            other = cases[-1 - int(rng.integers(min(12, len(cases))))]
            known = (*other.prompt, *other.choices[0])
            cut = int(rng.choice([len(other.prompt), len(known), rng.integers(1, len(known))]))
            prompt = (*known[:cut], *_tokens(rng, 0, 10))[:60]
        same = bool(cases) and rng.random() < 0.1
        cases.append(Case(prompt, cases[-1].choices if same else make_choices(rng)))
    return cases


def kinds_in(cases: Sequence[Case]) -> dict[str, int]:
    """How many cases have what makes a trie hard."""
    found = {"common beginning": 0, "beginning of another": 0, "the same twice": 0, "alone": 0}
    for case in cases:
        distinct = set(case.choices)
        found["the same twice"] += len(distinct) < len(case.choices)
        found["alone"] += len(case.choices) == 1
        pairs = [(a, b) for a in distinct for b in distinct if a != b]
        found["beginning of another"] += any(b[: len(a)] == a for a, b in pairs)
        found["common beginning"] += any(a[0] == b[0] for a, b in pairs)
    return found


# -- through the engine --


def ask(
    lab: SimpleNamespace,
    core: EngineCore,
    cases: Sequence[Case],
    rng: np.random.Generator,
    longest: int = 12,
) -> list[tuple[tuple[float, ...], ...]]:
    """Batches of a few at a time, generations of one or `longest` tokens among them; answers in
    the order of the cases."""
    answers: list[tuple[tuple[float, ...], ...]] = []
    while len(answers) < len(cases):
        batch = cases[len(answers) :][: int(rng.integers(1, 9))]
        requests: list[EngineRequest] = [
            lab.request(i, case.prompt, Score(case.choices)) for i, case in enumerate(batch)
        ]
        for i in range(len(batch), len(batch) + 3):
            kind = Generate(int(rng.choice([1, longest], p=[0.6, 0.4])))
            requests.insert(0, lab.request(i, _tokens(rng, 1, 20), kind))
        per_step = [None, 1, 2][int(rng.integers(3))]
        outcomes = lab.drive(core, requests, per_step=per_step)
        for i in range(len(batch)):
            last = outcomes[i].last
            assert last.error is None, last.error
            answers.append(last.choices)
    return answers


def worst_error(cases: Sequence[Case], answers: Sequence[tuple[tuple[float, ...], ...]]) -> float:
    """Of any token of any choice; equal choices must have equal answers."""
    worst = 0.0
    for case, answer in zip(cases, answers, strict=True):
        said: dict[Choice, tuple[float, ...]] = {}
        for choice, logprobs in zip(case.choices, answer, strict=True):
            if said.setdefault(choice, logprobs) is not logprobs:
                assert said[choice] == logprobs
                continue
            right = alone(case.prompt, choice)
            assert len(logprobs) == len(right) == len(choice)
            worst = max(worst, float(np.abs(np.array(logprobs) - right).max()))
    return worst


def check(lab: SimpleNamespace, name: str, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cases, core = make_cases(rng, n), make_core(SETTINGS[name])
    assert min(kinds_in(cases).values()) >= max(1, n // 60), "too tame"
    # Some far longer than what the engine has learned to expect, so that they run out of pages.
    answers = ask(lab, core, cases, rng, longest=100 if name == "small pool" else 12)
    assert worst_error(cases, answers) < TOLERANCE
    stats = core.stats()
    assert (stats.counters.cached_tokens > 0) == (name != "no cache")
    assert stats.preemptions > 0 or name != "small pool"
    assert stats.evicted_tokens > 0 or name != "small pool"


SOON = ("small pool", "no cache", "a list")  # what these do not reach, the slow test does


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("name", SOON)
def test_a_choice_is_scored_as_if_it_were_alone(lab: SimpleNamespace, name: str) -> None:
    check(lab, name, 30, seed=list(SETTINGS).index(name))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SETTINGS)
def test_thousands_of_choices_are_scored_as_if_alone(lab: SimpleNamespace, name: str) -> None:
    check(lab, name, 1000, seed=100 + list(SETTINGS).index(name))


def test_tries_of_several_requests_share_their_steps(lab: SimpleNamespace) -> None:
    """Six prompts and their choices fit a step, and so take one; cached or not."""
    core = make_core(SETTINGS["room for all"])
    rng = np.random.default_rng(5)
    cases = [Case(_tokens(rng, 5, 30), tuple((t,) for t in _tokens(rng, 4, 9))) for _ in range(6)]
    for _ in range(2):
        before = core.stats().counters.steps
        requests = [lab.request(i, c.prompt, Score(c.choices)) for i, c in enumerate(cases)]
        outcomes = lab.drive(core, requests)
        assert core.stats().counters.steps - before == 1
        assert worst_error(cases, [outcomes[i].last.choices for i in range(6)]) < TOLERANCE


# -- what the methods make of it --


def means(rows: Sequence[Logprobs]) -> list[float]:
    return [float(row.mean()) for row in rows]


def sums(rows: Sequence[Logprobs]) -> list[float]:
    return [float(row.sum()) for row in rows]


def gains(rows: Sequence[Logprobs], unconditional: Sequence[Logprobs]) -> list[float]:
    """mean(lp - unconditional lp); the first token has no unconditional one: 0."""
    return [
        float((row - np.concatenate([[0.0], without])).mean())
        for row, without in zip(rows, unconditional, strict=True)
    ]


def survivors(rows: Sequence[Logprobs]) -> set[int]:
    """Who is best in every column, within the tolerance; the ended go on with their own mean."""
    width = max(map(len, rows))
    padded = np.array([np.pad(r, (0, width - len(r)), constant_values=r.mean()) for r in rows])
    alive = set(range(len(rows)))
    for column in padded.T:
        best = max(column[i] for i in alive)
        alive = {i for i in alive if column[i] >= best - 2 * TOLERANCE}
    return alive


@dataclass(frozen=True)
class Judged:
    """A case with what the engine said of it and what is right."""

    case: Case
    scores: list[ChoiceScore]
    right: list[Logprobs]
    unconditional: list[Logprobs]


@pytest.fixture(scope="module")
def judged(lab: SimpleNamespace) -> list[Judged]:
    rng = np.random.default_rng(9)
    cases = make_cases(rng, 40)
    answers = ask(lab, make_core(SETTINGS["room for all"]), cases, rng)
    found: list[Judged] = []
    for case, answer in zip(cases, answers, strict=True):
        without = [alone((), choice) for choice in case.choices]
        scores = [
            ChoiceScore(choice, logprobs, (), (None, *tail.tolist()))
            for choice, logprobs, tail in zip(case.choices, answer, without, strict=True)
        ]
        right = [alone(case.prompt, choice) for choice in case.choices]
        found.append(Judged(case, scores, right, without))
    return found


def right_values(method: str, each: Judged) -> list[float]:
    if method == "unconditional_likelihood_normalized":
        return gains(each.right, each.unconditional)
    return (means if method == "token_length_normalized" else sums)(each.right)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "method", ["token_length_normalized", "unconditional_likelihood_normalized", "joint"]
)
def test_a_methods_values_are_those_of_its_formula(judged: list[Judged], method: str) -> None:
    n_plain = 0
    for each in judged:
        right = right_values(method, each)
        n_tokens = max(map(len, each.case.choices)) if method == "joint" else 1
        assert METHODS[method](each.scores) == pytest.approx(right, abs=n_tokens * TOLERANCE)
        first = each.case.choices.index(each.case.choices[int(np.argmax(right))])
        others = [v for v, c in zip(right, each.case.choices, strict=True)
                  if c != each.case.choices[first]]  # fmt: skip
        if max(others, default=-math.inf) < right[first] - 2 * n_tokens * TOLERANCE:
            n_plain += 1
            assert pick(each.scores, method, 0.0, 0.7) == first
    assert n_plain > 0.9 * len(judged)


def test_greedy_selection_takes_who_wins_token_by_token(judged: list[Judged]) -> None:
    n_plain = 0
    for each in judged:
        values = METHODS["greedy_token_selection"](each.scores)
        winner = pick(each.scores, "greedy_token_selection", 0.0, 0.7)
        assert [i for i, value in enumerate(values) if value == 0.0] == [winner]
        assert sum(math.isinf(value) for value in values) == len(values) - 1
        alive = survivors(each.right)
        assert winner in alive
        assert winner == each.case.choices.index(each.case.choices[winner]), "ties: the first"
        n_plain += len({each.case.choices[i] for i in alive}) == 1
    assert n_plain > 0.9 * len(judged)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    "method", ["token_length_normalized", "unconditional_likelihood_normalized", "joint"]
)
def test_a_draw_follows_the_scores_over_the_temperature(
    judged: list[Judged], method: str, temperature: float
) -> None:
    for each in judged[:20]:
        values = np.array(right_values(method, each)) / temperature
        p = np.exp(values - values.max()) / np.exp(values - values.max()).sum()
        ends = np.cumsum(p)
        for point in np.linspace(0.003, 0.997, 29):
            if np.abs(ends - point).min() > 1e-2:
                expected = int(np.searchsorted(ends, point, side="right"))
                assert pick(each.scores, method, temperature, float(point)) == expected
