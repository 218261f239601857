"""Draws as a device's sampler gets them: they give what the host's sampler may give."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sgc.runtime.engine.model.device.logits import DeviceLogits
from sgc.runtime.engine.model.device.sent_draws import send
from sgc.runtime.engine.requests.draws import Draw
from sgc.runtime.engine.requests.finite import NotFinite
from sgc.runtime.engine.requests.penalties import Penalties
from sgc.runtime.engine.requests.request import SamplingParams
from sgc.runtime.engine.step.host_logits import HostLogits

VOCAB = 70
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def penalties(prompt: list[int], generated: list[int]) -> Penalties:
    found = Penalties(np.array(prompt, np.int64), VOCAB)
    for token in generated:
        found.add(token)
    return found


def only(*tokens: int) -> np.ndarray:
    allowed = np.zeros(VOCAB, np.bool_)
    allowed[list(tokens)] = True
    return allowed


GREEDY = [
    Draw(SamplingParams()),
    Draw(SamplingParams(), allowed=only(3, 64, 69)),
    Draw(SamplingParams(), banned=(0, 1, 2, 5)),
    Draw(SamplingParams(logit_bias=((7, 50.0), (8, -1.0)))),
    Draw(SamplingParams(repetition_penalty=1.8), penalties=penalties([1, 2], [3, 3])),
    Draw(SamplingParams(frequency_penalty=0.9, presence_penalty=0.4),
         penalties=penalties([], [1, 2, 2])),
    Draw(SamplingParams(logit_bias=((9, 90.0),)), banned=(9,), allowed=only(9, 11)),
]  # fmt: skip


@pytest.mark.parametrize("n", [1, 3, len(GREEDY)])
def test_the_likeliest_is_the_hosts(n: int) -> None:
    """Each alone, some, and all in one batch: what one row asks for changes no other's."""
    values = np.random.default_rng(n).normal(size=(len(GREEDY), VOCAB)).astype(np.float32)
    on_device, host = DeviceLogits(torch.from_numpy(values).to(DEVICE)), HostLogits(values)
    for start in range(0, len(GREEDY), n):
        at = list(range(start, min(start + n, len(GREEDY))))
        draws = [GREEDY[i] for i in at]
        assert on_device.draw(at, draws) == host.draw(at, draws)
    assert np.array_equal(np.stack(list(on_device.rows(range(len(GREEDY))))), values)


def test_what_one_row_draws_depends_on_no_other() -> None:
    draws = [
        Draw(SamplingParams(0.7 + 0.1 * i, top_p=p, top_k=k, min_p=m, seed=i), n_generated=i)
        for i, (p, k, m) in enumerate(
            [(1.0, -1, 0.0), (0.8, -1, 0.0), (1.0, 5, 0.0), (0.9, 9, 0.1)]
        )
    ]
    draws += GREEDY[:2]
    values = torch.randn(len(draws), VOCAB, generator=torch.Generator().manual_seed(1))
    logits = DeviceLogits(values.to(DEVICE))
    together = logits.draw(range(len(draws)), draws)
    for i, draw in enumerate(draws):
        assert logits.draw([i], [draw]) == [together[i]]


def test_a_row_without_a_token_is_found() -> None:
    values = torch.zeros(3, VOCAB)
    values[1] = torch.nan
    logits = DeviceLogits(values.to(DEVICE))
    with pytest.raises(NotFinite):
        logits.draw([0, 1, 2], [GREEDY[0]] * 3)
    assert logits.draw([2], [GREEDY[0]]) == [0]


def test_log_probabilities_are_the_hosts() -> None:
    values = np.random.default_rng(5).normal(size=(4, VOCAB)).astype(np.float32)
    values[2, 3] = np.nan
    at, tokens = [3, 0, 0, 2, 1], [1, 69, 4, 5, 6]
    got = DeviceLogits(torch.from_numpy(values).to(DEVICE)).log_probabilities(at, tokens)
    right = HostLogits(values).log_probabilities(at, tokens)
    assert np.allclose(got, right, atol=1e-5, equal_nan=True)
    assert np.isnan(got[3])


def test_draws_of_a_greedy_step_are_sent_once() -> None:
    one, other = (send([Draw(SamplingParams())] * 4, VOCAB, DEVICE) for _ in range(2))
    assert one.rows is other.rows
