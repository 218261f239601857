"""Settings of a sampler, and what transformers' logits processors make of a row under them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import (
    LogitsProcessorList,
    MinNewTokensLengthLogitsProcessor,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from sgc.runtime.engine.requests.draws import Draw, uniform
from sgc.runtime.engine.requests.penalties import Penalties
from sgc.runtime.engine.requests.request import SamplingParams
from sgc.runtime.engine.step.sampler import sample

Row = npt.NDArray[np.float32]


Probabilities = npt.NDArray[np.float64]


Settings = dict[str, Any]


MAX_UNIFORM = 1 - 2.0**-53


MASK = (1 << 64) - 1


LEAST_P = 1e-4


N_DRAWS = 3000


N_ROWS = 12  # of each kind


@dataclass(frozen=True)
class Case:
    """One row to draw from. settings: what `SamplingParams` is given. banned: ends, too early."""

    row: Row
    settings: Settings
    prompt: tuple[int, ...] = ()
    generated: tuple[int, ...] = ()
    banned: tuple[int, ...] = ()

    def draw(self, seed: int) -> Draw:
        params = SamplingParams(**{**self.settings, "seed": seed})
        state = None
        if params.has_penalties:
            state = Penalties(np.array(self.prompt, np.int64), len(self.row))
            for token in self.generated:
                state.add(token)
        return Draw(params, len(self.generated), state, self.banned)

    def sample(self, seeds: Sequence[int]) -> list[int]:
        draws = [self.draw(seed) for seed in seeds]
        return sample(np.repeat(self.row[None], len(seeds), 0), draws)

    def scores(self) -> torch.Tensor:
        """[1, vocab], what transformers makes of the logits, in float64."""
        ids = torch.tensor([[*self.prompt, *self.generated]])
        scores = torch.from_numpy(self.row.astype(np.float64))[None]
        return _processors(self)(ids, scores)

    def probabilities(self) -> Probabilities:
        found: Probabilities = self.scores().softmax(-1)[0].numpy()
        return found


def _processors(case: Case) -> LogitsProcessorList:
    """In the order in which `GenerationMixin` puts them; what it does not have, between."""
    asked = case.settings
    steps: list[Any] = []
    if (penalty := asked.get("repetition_penalty", 1.0)) != 1:
        steps.append(RepetitionPenaltyLogitsProcessor(penalty))
    steps.append(lambda _, scores: scores - openai_penalty(case))
    steps.append(lambda _, scores: scores + bias_of(case))
    if case.banned:
        n = len(case.generated)
        ends = list(case.banned)
        steps.append(MinNewTokensLengthLogitsProcessor(len(case.prompt), n + 1, ends, "cpu"))
    if (temperature := asked.get("temperature", 0.0)) > 0:
        steps.append(TemperatureLogitsWarper(float(temperature)))
    if (top_k := asked.get("top_k", -1)) > 0:
        steps.append(TopKLogitsWarper(top_k))
    if (top_p := asked.get("top_p", 1.0)) < 1:
        steps.append(TopPLogitsWarper(top_p))
    if (min_p := asked.get("min_p", 0.0)) > 0:
        steps.append(MinPLogitsWarper(min_p))
    return LogitsProcessorList(steps)


def openai_penalty(case: Case) -> torch.Tensor:
    """mu[j] -> mu[j] - c[j] * alpha_frequency - float(c[j] > 0) * alpha_presence"""
    penalty = torch.zeros(1, len(case.row), dtype=torch.float64)
    for token in set(case.generated):
        count = case.generated.count(token)
        penalty[0, token] += count * case.settings.get("frequency_penalty", 0.0)
        penalty[0, token] += case.settings.get("presence_penalty", 0.0)
    return penalty


def bias_of(case: Case) -> torch.Tensor:
    bias = torch.zeros(1, len(case.row), dtype=torch.float64)
    for token, value in case.settings.get("logit_bias", ()):
        bias[0, token] += value
    return bias


def seed_of(point: float, n_generated: int) -> int:
    """A seed whose uniform number for the next token is `point`: splitmix64, backwards."""
    after = _unmix(int(point * 2.0**53) << 11)
    seed = _unmix((after - (n_generated + 1) * 0x9E3779B97F4A7C15) & MASK)
    assert uniform(seed, n_generated) == int(point * 2.0**53) * 2.0**-53, "another hash now?"
    return seed


def _unmix(z: int) -> int:
    z ^= (z >> 31) ^ (z >> 62)
    z = (z * pow(0x94D049BB133111EB, -1, 1 << 64)) & MASK
    z ^= (z >> 27) ^ (z >> 54)
    z = (z * pow(0xBF58476D1CE4E5B9, -1, 1 << 64)) & MASK
    return z ^ (z >> 30) ^ (z >> 60)


def _history(rng: np.random.Generator, vocab: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A prompt and what was generated; some tokens more than once, some in both."""
    some = rng.integers(0, vocab, max(2, vocab // 3))
    prompt = rng.choice(some, int(rng.integers(1, 20)))
    generated = rng.choice(some, int(rng.integers(1, 20)))
    return tuple(prompt.tolist()), tuple(generated.tolist())


def _temperature(rng: np.random.Generator, vocab: int) -> Settings:
    return {"temperature": float(rng.choice([0.3, 0.7, 1.0, 1.6, 3.0]))}


def _top_k(rng: np.random.Generator, vocab: int) -> Settings:
    return {"top_k": int(rng.choice([1, 2, max(3, vocab // 3), vocab - 1, vocab, vocab + 7]))}


def _top_p(rng: np.random.Generator, vocab: int) -> Settings:
    return {"top_p": float(rng.choice([1e-6, rng.uniform(0.05, 0.5), rng.uniform(0.5, 0.999)]))}


def _min_p(rng: np.random.Generator, vocab: int) -> Settings:
    return {"min_p": float(rng.choice([rng.uniform(0.001, 0.1), rng.uniform(0.1, 0.9), 1.0]))}


def _repetition(rng: np.random.Generator, vocab: int) -> Settings:
    return {"repetition_penalty": float(rng.choice([0.8, 1.1, 1.5, 2.5]))}


def _frequency(rng: np.random.Generator, vocab: int) -> Settings:
    return {"frequency_penalty": float(rng.choice([-0.5, 0.3, 1.2]))}


def _presence(rng: np.random.Generator, vocab: int) -> Settings:
    return {"presence_penalty": float(rng.choice([-0.7, 0.5, 1.5]))}


def _bias(rng: np.random.Generator, vocab: int) -> Settings:
    tokens = rng.choice(vocab, min(vocab, 4), replace=False).tolist()
    return {"logit_bias": tuple((t, float(rng.choice([-100.0, -1.5, 0.8, 3.0]))) for t in tokens)}


def _ends(rng: np.random.Generator, vocab: int) -> Settings:
    """Not of `SamplingParams`: tokens that would end it before its `min_tokens`."""
    n = max(1, min(vocab - 2, int(rng.integers(1, 4))))
    return {"banned": tuple(rng.choice(vocab, n, replace=False).tolist())}


Part = Callable[[np.random.Generator, int], Settings]


PARTS: dict[str, tuple[Part, ...]] = {
    "temperature": (),
    "top_k": (_top_k,),
    "top_p": (_top_p,),
    "min_p": (_min_p,),
    "repetition_penalty": (_repetition,),
    "frequency_penalty": (_frequency,),
    "presence_penalty": (_presence,),
    "min_tokens": (_ends,),
    "logit_bias": (_bias,),
    "top_k, top_p": (_top_k, _top_p),
    "top_p, min_p": (_top_p, _min_p),
    "top_k, top_p, min_p": (_top_k, _top_p, _min_p),
    "all penalties": (_repetition, _frequency, _presence),
    "all penalties, top_p": (_repetition, _frequency, _presence, _top_p),
    "penalty, min_tokens, top_k": (_repetition, _ends, _top_k),
    "logit_bias, top_p": (_bias, _top_p),
    "logit_bias, min_tokens, min_p": (_bias, _ends, _min_p),
    "logit_bias, penalties, top_k": (_bias, _repetition, _presence, _top_k),
    "everything": (_repetition, _frequency, _presence, _bias, _ends, _top_k, _top_p, _min_p),
}


def make_case(name: str, rng: np.random.Generator, row: Row) -> Case:
    """Random settings of the kinds that the name says, and always a temperature."""
    settings = _temperature(rng, len(row))
    for part in PARTS[name]:
        settings |= part(rng, len(row))
    banned = settings.pop("banned", ())
    return Case(row, settings, *_history(rng, len(row)), banned)


def make_row(rng: np.random.Generator, least: int, most: int) -> Row:
    """Logits of a random size and scale."""
    vocab = int(math.exp(rng.uniform(math.log(least), math.log(most + 1))))
    scale = 10 ** rng.uniform(-1, 1)
    return (scale * rng.standard_normal(vocab) + rng.normal()).astype(np.float32)


def nudged(case: Case, factor: float) -> Case:
    """Its thresholds, a little off."""
    names = {"top_p", "min_p"} & case.settings.keys()
    off = {name: min(1.0, factor * case.settings[name]) for name in names}
    return replace(case, settings={**case.settings, **off})


def is_undecided(case: Case) -> bool:
    """Whether what can come hangs on the rounding of a threshold."""
    low, high = (nudged(case, factor).probabilities() > 0 for factor in (1 - 1e-5, 1 + 1e-5))
    return bool((low != high).any())


def by_rank(row: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.int64]:
    """Tokens from likeliest to least; of equals, lower ids first."""
    return np.lexsort((np.arange(len(row)), -row))
