"""The sampler against transformers' logits processors: each parameter alone, and together.

Which tokens can come, for hundreds of rows of logits; how often each comes, by chi-square; and
what whole generations are, token by token. Seeds are fixed, so that nothing here is a matter of
luck. Frequency and presence penalties have no processor there: their formula is OpenAI's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
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

from sgc.runtime.engine.requests.penalties import Penalties
from sgc.runtime.engine.requests.request import Generate, SamplingParams
from sgc.runtime.engine.step.sampler import Draw, sample, uniform

Row = npt.NDArray[np.float32]
Probabilities = npt.NDArray[np.float64]
Settings = dict[str, Any]
MAX_UNIFORM = 1 - 2.0**-53
MASK = (1 << 64) - 1
LEAST_P = 1e-4
N_DRAWS = 3000
N_ROWS = 24  # of each kind


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """For rows as short as these, more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# -- the reference --


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


# -- cases: each parameter alone, and together --


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


# -- which tokens can come --


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


def assert_support(case: Case, allowed: npt.NDArray[np.bool_], p: Probabilities) -> None:
    """Draws at the middle of tokens' shares of [0, 1), at both ends, and at random points."""
    kept = np.array([token for token in by_rank(p) if allowed[token]])
    shares = p[kept] / p[kept].sum()
    middles = np.cumsum(shares) - shares / 2
    # A share below this is lost in the rounding of the sum, here as there.
    tried = np.flatnonzero(shares > 1e-5)
    if len(tried) > 24:
        tried = np.concatenate([tried[:8], tried[len(tried) // 2 :][:8], tried[-8:]])
    points = [0.0, MAX_UNIFORM, *middles[tried], *np.linspace(0.01, 0.99, 9)]
    drawn = case.sample([seed_of(float(point), len(case.generated)) for point in points])
    assert set(drawn) <= set(kept.tolist())
    assert drawn[0] == kept[0], "the likeliest comes first"
    assert drawn[1] == kept[-1] or p[kept[-1]] < 1e-12, "the least likely that is kept comes last"
    assert set(kept[tried].tolist()) <= set(drawn)


@pytest.mark.parametrize("name", PARTS)
def test_the_tokens_that_can_come_are_those_that_transformers_leaves(name: str) -> None:
    rng = np.random.default_rng(list(PARTS).index(name))
    n_undecided = 0
    for _ in range(N_ROWS):
        case = make_case(name, rng, make_row(rng, 5, 2000))
        if is_undecided(case):
            n_undecided += 1
            continue
        scores, p = case.scores()[0], case.probabilities()
        assert_support(case, (scores > -math.inf).numpy(), p)
    assert n_undecided <= 1


def keep_by_hand(case: Case) -> set[int]:
    """What the filters keep where logits are equal: of equal tokens, those of lower ids."""
    asked, row = case.settings, case.row.astype(np.float64) / case.settings["temperature"]
    kept = by_rank(row).tolist()
    kept = kept[: asked["top_k"]] if asked.get("top_k", -1) > 0 else kept
    weights = [math.exp(row[token] - row[kept[0]]) for token in kept]
    limit, before, n = asked.get("top_p", 1.0) * math.fsum(weights), 0.0, 0
    while n < len(kept) and before < limit:
        before += weights[n]
        n += 1
    least = asked.get("min_p", 0.0)
    return {t for t, w in zip(kept[:n], weights[:n], strict=True) if w >= least}


@pytest.mark.parametrize("name", ["top_k", "top_p", "min_p", "top_k, top_p", "top_k, top_p, min_p"])
def test_of_equal_tokens_the_lower_ids_are_kept(name: str) -> None:
    """transformers keeps more of them (top-k) or any of them (top-p); their logits are the same."""
    rng = np.random.default_rng(50 + list(PARTS).index(name))
    n_tried = 0
    for _ in range(24):
        row = np.round(2 * make_row(rng, 5, 60)) / 2
        case = make_case(name, rng, row.astype(np.float32))
        ours = keep_by_hand(case)
        if any(keep_by_hand(nudged(case, f)) != ours for f in (1 - 1e-5, 1 + 1e-5)):
            continue  # hangs on rounding
        n_tried += 1
        allowed = np.isin(np.arange(len(row)), list(ours))
        weights = np.exp((row - row.max()) / case.settings["temperature"], dtype=np.float64)
        assert_support(case, allowed, weights / weights.sum())
        theirs = np.flatnonzero(case.probabilities() > 0)
        if "top_k" not in name:
            assert sorted(row[list(ours)]) == sorted(row[theirs])
        elif name == "top_k":
            assert ours <= set(theirs.tolist())
            assert set(row[theirs]) == set(row[list(ours)])
    assert n_tried >= 12


# -- how often each comes --


def p_value(statistic: float, degrees: int) -> float:
    """Of a chi-square statistic, by Wilson and Hilferty's normal approximation."""
    if degrees == 0:
        return 1.0
    spread = 2 / (9 * degrees)
    z = ((statistic / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 0.5 * math.erfc(z / math.sqrt(2))


def merged(expected: Probabilities, counts: Probabilities) -> list[tuple[float, float]]:
    """(expected, counted) of bins of 5 expected draws or more, unlikely tokens put together."""
    bins = [(0.0, 0.0)]
    for token in np.argsort(expected):
        if bins[-1][0] >= 5:
            bins.append((0.0, 0.0))
        bins[-1] = (bins[-1][0] + expected[token], bins[-1][1] + counts[token])
    if len(bins) > 1 and bins[-1][0] < 5:
        last = bins.pop()
        bins[-1] = (bins[-1][0] + last[0], bins[-1][1] + last[1])
    return bins


def fit(drawn: Sequence[int], p: Probabilities) -> float:
    """The p-value of the draws under `p`; 0 if one of them cannot be."""
    counts = np.bincount(drawn, minlength=len(p)).astype(np.float64)
    if counts[p == 0].any():
        return 0.0
    bins = merged(p * len(drawn), counts)
    return p_value(sum((n - e) ** 2 / e for e, n in bins), len(bins) - 1)


def spread_case(name: str, rng: np.random.Generator) -> Case:
    """Over few tokens, of which several are likely, so that a wrong share would show."""
    for _ in range(1000):
        row = (1.2 * rng.standard_normal(int(rng.integers(8, 21)))).astype(np.float32)
        case = make_case(name, rng, row)
        if (case.probabilities() > 0.02).sum() >= 4 and not is_undecided(case):
            return case
    raise AssertionError("no such case")


@pytest.mark.parametrize("name", PARTS)
def test_draws_are_as_frequent_as_transformers_says(name: str) -> None:
    case = spread_case(name, np.random.default_rng(100 + list(PARTS).index(name)))
    drawn = case.sample(range(N_DRAWS))
    assert fit(drawn, case.probabilities()) > LEAST_P, case.settings


def test_draws_of_one_seed_along_a_text_are_as_frequent() -> None:
    """The other coordinate of a draw's uniform number."""
    row = np.random.default_rng(3).standard_normal(12).astype(np.float32)
    draws = [Draw(SamplingParams(0.9, top_p=0.9, seed=11), n) for n in range(N_DRAWS)]
    drawn = sample(np.repeat(row[None], N_DRAWS, 0), draws)
    case = Case(row, {"temperature": 0.9, "top_p": 0.9}, (0,))
    assert fit(drawn, case.probabilities()) > LEAST_P


WRONG_ORDERS: dict[str, tuple[Settings, Callable[[torch.Tensor], torch.Tensor]]] = {
    "min-p before temperature": (
        {"temperature": 2.0, "min_p": 0.25},
        lambda x: MinPLogitsWarper(0.25)(None, x) / 2,
    ),
    "top-p before temperature": (
        {"temperature": 2.0, "top_p": 0.8},
        lambda x: TopPLogitsWarper(0.8)(None, x) / 2,
    ),
    "top-p before top-k": (
        {"temperature": 1.0, "top_k": 6, "top_p": 0.8},
        lambda x: TopKLogitsWarper(6)(None, TopPLogitsWarper(0.8)(None, x)),
    ),
    "bias after temperature": (
        {"temperature": 2.0, "logit_bias": ((0, 1.5),)},
        lambda x: x / 2 + torch.tensor([1.5] + [0.0] * (x.shape[1] - 1)),
    ),
    "penalty after temperature": (
        {"temperature": 2.0, "presence_penalty": 1.5},
        lambda x: x / 2 - torch.tensor([1.5] + [0.0] * (x.shape[1] - 1)),
    ),
    "bias before repetition penalty": (
        {"temperature": 1.0, "repetition_penalty": 3.0, "logit_bias": ((0, 1.5),)},
        lambda x: torch.cat([(x[:, :1] + 1.5) / 3, x[:, 1:]], 1),
    ),
    "presence penalty before repetition penalty": (
        {"temperature": 1.0, "repetition_penalty": 3.0, "presence_penalty": 1.0},
        lambda x: torch.cat([(x[:, :1] - 1.0) / 3, x[:, 1:]], 1),
    ),
}


@pytest.mark.parametrize("name", WRONG_ORDERS)
def test_another_order_of_the_steps_would_be_seen(name: str) -> None:
    settings, wrong = WRONG_ORDERS[name]
    row = np.linspace(2.0, -1.0, 12).astype(np.float32)
    case = Case(row, settings, (0,), (0,))
    drawn = case.sample(range(N_DRAWS))
    assert fit(drawn, case.probabilities()) > LEAST_P
    other: Probabilities = wrong(torch.from_numpy(row)[None].double()).softmax(-1)[0].numpy()
    assert fit(drawn, other) < LEAST_P


def test_the_p_values_are_right() -> None:
    """Against tables: the points that a chi-square passes once in 20, 100 and 10,000 times."""
    for degrees, points in {3: (7.815, 11.345, 21.108), 10: (18.307, 23.209, 35.564)}.items():
        for point, p in zip(points, (0.05, 0.01, 1e-4), strict=True):
            assert p_value(point, degrees) == pytest.approx(p, rel=0.5)


# -- greedy --


@pytest.mark.parametrize("temperature", [0.0, 1e-6])
@pytest.mark.parametrize("name", PARTS)
def test_greedy_is_the_largest_of_what_penalties_and_bias_leave(
    name: str, temperature: float
) -> None:
    rng = np.random.default_rng(200 + list(PARTS).index(name))
    for _ in range(6):
        case = make_case(name, rng, make_row(rng, 5, 2000))
        case = replace(case, settings={**case.settings, "temperature": temperature})
        plain = replace(case, settings={**case.settings, "temperature": 1.0})
        assert case.sample([1, 2]) == [int(plain.scores().argmax())] * 2


def test_of_equal_logits_greedy_takes_the_lowest_id() -> None:
    rng = np.random.default_rng(7)
    for vocab in (2, 5, 16, 17, 300):
        row = np.round(rng.standard_normal(vocab)).astype(np.float32)
        lowest = int(np.flatnonzero(row == row.max())[0])
        assert Case(row, {}).sample([0]) == [lowest]
        rest = np.where(np.arange(vocab) == lowest, -np.inf, row)
        assert Case(row, {}, banned=(lowest,)).sample([0]) == [int(rest.argmax())]
        biased = Case(row, {"logit_bias": ((vocab - 1, float(row.max() - row[-1])),)})
        assert biased.sample([0]) == [lowest]


# -- the bias --


def test_a_bias_forces_forbids_and_does_not_lift_a_ban() -> None:
    row = np.random.default_rng(8).standard_normal(30).astype(np.float32)
    for temperature in (0.0, 1.0):
        forced = Case(row, {"temperature": temperature, "logit_bias": ((5, 100.0),)})
        assert set(forced.sample(range(100))) == {5}
        assert 5 not in replace(forced, banned=(5,)).sample(range(100))
        best = int(row.argmax())
        without = Case(row, {"temperature": temperature, "logit_bias": ((best, -100.0),)})
        assert best not in without.sample(range(100))


def test_a_bias_is_of_its_own_row_and_leaves_the_logits_alone() -> None:
    rows = np.random.default_rng(9).standard_normal((6, 30)).astype(np.float32)
    before = rows.copy()
    plain = [Draw(SamplingParams(float(i % 2), seed=i)) for i in range(6)]
    alone = sample(rows, plain)
    some = list(plain)
    some[2] = Draw(SamplingParams(0.0, logit_bias=((7, 100.0),)))
    some[3] = Draw(SamplingParams(1.0, logit_bias=((9, 100.0),)))
    assert sample(rows, some) == [*alone[:2], 7, 9, *alone[4:]]
    assert np.array_equal(rows, before)


# -- the batch --


def test_a_draw_is_the_same_in_whatever_batch_it_is() -> None:
    """Alone, among others, in another order: with every parameter, greedy rows among them."""
    rng = np.random.default_rng(10)
    names = [*PARTS] * 3
    vocab = 401  # odd, so that rows begin at every alignment
    rows = (3 * rng.standard_normal((len(names), vocab))).astype(np.float32)
    cases = [make_case(name, rng, row) for name, row in zip(names, rows, strict=True)]
    cases[::5] = [replace(c, settings={**c.settings, "temperature": 0.0}) for c in cases[::5]]
    draws = [case.draw(seed) for seed, case in enumerate(cases)]
    alone = [case.sample([seed])[0] for seed, case in enumerate(cases)]
    assert sample(rows, draws) == alone
    for _ in range(5):
        some = rng.permutation(len(names))[: int(rng.integers(1, len(names)))]
        assert sample(rows[some], [draws[i] for i in some]) == [alone[i] for i in some]


# -- whole generations --

FIXED: dict[str, Settings] = {
    "temperature": {"temperature": 0.8},
    "top_k": {"temperature": 1.1, "top_k": 9},
    "top_p": {"temperature": 1.3, "top_p": 0.6},
    "min_p": {"temperature": 1.5, "min_p": 0.05},
    "repetition_penalty": {"temperature": 0.7, "repetition_penalty": 1.4},
    "frequency_penalty": {"temperature": 0.3, "frequency_penalty": 0.9},
    "presence_penalty": {"temperature": 0.3, "presence_penalty": 1.2},
    "greedy, penalties": {"repetition_penalty": 1.3, "frequency_penalty": 0.4},
    "greedy": {},
    "logit_bias": {"temperature": 0.9, "logit_bias": ((3, 9.0), (4, -100.0), (5, 10.0))},
    "greedy, logit_bias": {"logit_bias": tuple((i, 2.5) for i in range(3, 60))},
    "everything": {
        "temperature": 1.2, "top_k": 40, "top_p": 0.9, "min_p": 0.02, "repetition_penalty": 1.2,
        "frequency_penalty": 0.3, "presence_penalty": 0.4, "logit_bias": ((3, 6.0), (9, 7.0)),
    },
}  # fmt: skip


def by_hand(
    naive: Any, prompt: Sequence[int], settings: Settings, kind: Generate
) -> tuple[int, ...]:
    """A generation with transformers' processors and the uniform numbers of its seed."""
    generated: tuple[int, ...] = ()
    while len(generated) < kind.max_tokens:
        row = naive.logits([*prompt, *generated])[0]
        banned = kind.stop_ids if len(generated) < kind.min_tokens else ()
        case = Case(row, settings, tuple(prompt), generated, banned)
        token = int(case.scores().argmax())
        if settings.get("temperature", 0.0) > 0:
            p = case.probabilities()
            order = by_rank(p)
            point = uniform(kind.params.seed, len(generated))
            token = int(order[np.searchsorted(np.cumsum(p[order]), point, side="right")])
        generated += (token,)
        if token in kind.stop_ids:
            break
    return generated


@pytest.mark.parametrize("min_tokens", [0, 14])
def test_generations_are_those_of_transformers_processors(
    lab: SimpleNamespace, min_tokens: int
) -> None:
    """Every setting in one engine, whose pool is too small for all: draws survive preemption."""
    stop_ids = tuple(range(1, lab.VOCAB, 9))  # so many that most would end before their time
    core = lab.make_core(pool=150, chunk_tokens=32)
    naive = lab.Naive()
    rng = np.random.default_rng(12)
    asked: list[tuple[list[int], Settings, Generate]] = []
    for seed, settings in enumerate(FIXED.values()):
        prompt = rng.integers(3, 60, int(rng.integers(2, 40))).tolist()
        params = SamplingParams(**settings, seed=seed)
        asked.append((prompt, settings, Generate(18, params, min_tokens, (), stop_ids)))
    requests = [lab.request(i, prompt, kind) for i, (prompt, _, kind) in enumerate(asked)]
    outcomes = lab.drive(core, requests, per_step=3)
    assert core.stats().preemptions > 0 or min_tokens == 0
    for i, (prompt, settings, kind) in enumerate(asked):
        assert tuple(outcomes[i].ids) == by_hand(naive, prompt, settings, kind), [*FIXED][i]
        assert len(outcomes[i].ids) >= min_tokens
