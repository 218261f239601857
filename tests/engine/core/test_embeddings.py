"""Requests for embeddings: vectors are those of transformers' own hidden states, whatever runs
beside them and whatever is cached; what is not needed is not run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from engine.core.model.test_fused import COMMON, make_model

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.model.ways import fused_runner, runner_factories
from sgc.runtime.engine.names import POOLINGS
from sgc.runtime.engine.requests.request import Commit, Embed, Generate, Score

VOCAB = COMMON["vocab_size"]
RNG = np.random.default_rng(3)
TRUNK = RNG.integers(3, VOCAB, 40)
PROMPTS = [np.concatenate([TRUNK[: 7 * i], RNG.integers(3, VOCAB, 5 + 3 * i)]) for i in range(5)]


def pooled(model, tokens: np.ndarray, pooling: str) -> np.ndarray:
    """By transformers, in the model's dtype."""
    with torch.inference_mode():
        ids = torch.from_numpy(tokens)[None]
        hidden = model.eval().base_model(input_ids=ids, use_cache=False).last_hidden_state[0]
    hidden = hidden.double()
    return {"last": hidden[-1], "first": hidden[0], "mean": hidden.mean(0)}[pooling].numpy()


def distance(found, right) -> float:
    found, right = np.asarray(found, np.float64), np.asarray(right, np.float64)
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["Llama", "Qwen2"])
@pytest.mark.parametrize("way", [lambda model: runner_factories(model)[0], lambda _: fused_runner])
def test_vectors_are_those_of_transformers(lab, name, dtype, way) -> None:
    own, model = make_model(name, {}, dtype), make_model(name, {}, dtype)
    runner = way(model)(model, 512)
    core = lab.make_core(pool=512, vocab=VOCAB, forward=runner, max_context=512, chunk_tokens=16)
    asked = [(tokens, pooling) for tokens in PROMPTS for pooling in POOLINGS]
    requests = [lab.request(i, tokens, Embed(p)) for i, (tokens, p) in enumerate(asked)]
    beside = [lab.request(100 + i, TRUNK[: 5 * i + 1], Generate(8)) for i in range(4)]
    together = lab.drive(core, [*requests, *beside], per_step=3)
    again = lab.drive(core, requests)  # from the cache, where that may be
    assert again[12].last.usage.cached_tokens == len(PROMPTS[4]) - 1
    owns = [pooled(own, *each) for each in asked]
    exact = [pooled(own.float(), *each) for each in asked]  # of the same weights
    least = max(map(distance, owns, exact))
    for outcomes in (together, again):
        found = [outcomes[i].last.embedding for i in range(len(asked))]
        assert max(map(distance, found, exact)) < max(1e-5, 1.5 * least)


def test_a_last_token_runs_alone_and_a_mean_runs_all(lab) -> None:
    core = lab.make_core()
    prompt = range(3, 23)
    lab.drive(core, [lab.request(0, prompt, Commit())])
    n_before = core.stats().counters.positions_run
    last = lab.drive(core, [lab.request(1, prompt, Embed("last"))])[1].last.usage
    assert (last.prompt_tokens, last.cached_tokens, last.computed_tokens) == (20, 19, 1)
    assert core.stats().counters.positions_run - n_before == 1
    mean = lab.drive(core, [lab.request(2, prompt, Embed("mean"))])[2].last.usage
    assert (mean.cached_tokens, mean.computed_tokens, mean.completion_tokens) == (0, 20, 0)
    after = lab.drive(core, [lab.request(3, [*prompt, 5], Generate(1))])[3].last.usage
    assert after.cached_tokens == 20


def test_a_preempted_mean_begins_again(lab) -> None:
    """Those that generate are older, and take the pages of one that is half done."""
    naive, prompt = lab.Naive(), RNG.integers(3, lab.VOCAB, 60)
    core = lab.make_core(pool=100, chunk_tokens=4, policy="fcfs")
    requests = [lab.request(i, [5 + i, 9, 11], Generate(30)) for i in range(2)]
    embed = lab.request(9, prompt, Embed("mean"))
    outcomes = lab.drive(core, [*requests, embed])
    assert core.stats().preemptions > 0
    assert outcomes[9].last.embedding == naive.embed(prompt, embed.kind)


class _Broken:
    """A model whose hidden states are no numbers after token 7."""

    def __init__(self, model) -> None:
        self._model, self.run = model, model.run

    def hidden(self, batch):
        found = self._model.hidden(batch)
        found[batch.token_ids[batch.logit_index] == 7] = np.nan
        return found


@pytest.mark.parametrize("pooling", POOLINGS)
def test_what_is_not_finite_fails_alone(lab, pooling) -> None:
    core = lab.make_core(forward=_Broken(lab.make_model(4096)))
    bad, good = lab.request(1, [7], Embed(pooling)), lab.request(2, [8, 9], Embed(pooling))
    outcomes = lab.drive(core, [bad, good])
    assert outcomes[1].last.error.code == pb.ERROR_CODE_INTERNAL
    assert "hidden states that are not finite" in outcomes[1].last.error.message
    assert outcomes[2].last.embedding == lab.Naive().embed([8, 9], good.kind)


def test_refusals(lab) -> None:
    core = lab.make_core(pool=32)
    found = lab.drive(core, [lab.request(n, range(3, 3 + n), Embed("mean")) for n in (0, 32, 33)])
    assert found[0].last.error.code == pb.ERROR_CODE_INVALID_ARGUMENT
    assert found[32].last.error is None
    assert found[33].last.error.code == pb.ERROR_CODE_CONTEXT_EXCEEDED


def test_a_model_without_a_head_only_embeds(lab) -> None:
    core = lab.make_core(no_generation="it has no head")
    kinds = (Generate(3), Generate(0), Score(((5,),)), Embed("last"), Commit())
    found = lab.drive(core, [lab.request(i, [5, 6], kind) for i, kind in enumerate(kinds)])
    errors = [found[i].last.error for i in range(5)]
    assert [error and error.message for error in errors] == ["it has no head"] * 3 + [None] * 2
