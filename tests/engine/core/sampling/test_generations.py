"""Whole generations are those of transformers' processors."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from engine.core.sampling.reference import Case, Settings, by_rank
from tests_support import one_in

from sgc.runtime.engine.requests.draws import uniform
from sgc.runtime.engine.requests.request import Generate, SamplingParams

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


@pytest.mark.parametrize("min_tokens", one_in(2, [0, 14]))
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
