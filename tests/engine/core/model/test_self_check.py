"""The check at load reaches what requests will run, and refuses what errs more than the model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

from sgc.kernels.cpu import library
from sgc.kernels.cpu.attention import NativeAttention
from sgc.kernels.interface import Heads, Ragged
from sgc.kernels.parts import tensor_of
from sgc.runtime.engine.model import self_check
from sgc.runtime.engine.model.runner import UnsupportedModel
from sgc.runtime.engine.model.self_check import check_model, own_answers
from sgc.runtime.engine.model.ways import fused_runner, native_runner

WAYS = [fused_runner, native_runner] if library.find() else [fused_runner]
ways = pytest.mark.parametrize("way", WAYS)


def make(dtype: torch.dtype) -> transformers.LlamaForCausalLM:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=199, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
        initializer_range=0.1,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).to(dtype).eval()


class Changed:
    """A way whose logits are wrong, by so much, in batches that `is_meant` picks."""

    def __init__(self, way, is_meant, error) -> None:
        self.name, self._way, self._is_meant, self._error = way.name, way, is_meant, error
        self.batches = []

    def logits(self, batch, pool):
        self.batches.append(batch)
        logits = self._way.logits(batch, pool)
        if self._is_meant(batch):
            noise = np.random.default_rng(0).normal(size=logits.shape).astype(np.float32)
            size = np.linalg.norm(logits, axis=-1, keepdims=True)
            logits = logits + noise * self._error * size / np.sqrt(logits.shape[-1])
        return logits


def changed_runner(way, dtype, is_meant, error):
    model = make(dtype)
    own = own_answers(model)
    runner = way(model, 1)
    runner.way = Changed(runner.way, is_meant, error)
    return runner, own


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_of_damaged_weights_is_told_as_one(value) -> None:
    model = make(torch.float32)
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight[3, 5] = value
    with pytest.raises(UnsupportedModel, match="own logits are NaN or infinite in float32"):
        own_answers(model)


def has_many_tokens(batch) -> bool:
    """More than two tiles of 16 rows."""
    return bool((np.diff(batch.row_starts) > 32).any())


def has_later_tiles(batch) -> bool:
    """Keys of a second tile of 64, for few queries and for many."""
    return bool((np.diff(batch.page_starts) > 64).any())


def shares_a_trunk(batch) -> bool:
    n = np.diff(batch.page_starts)
    first = [batch.pages[start : start + n.min()] for start in batch.page_starts[:-1]]
    return len(first) > 3 and all((pages[:48] == first[0][:48]).all() for pages in first)


@pytest.mark.parametrize("is_meant", [has_many_tokens, has_later_tiles, shares_a_trunk])
@ways
def test_a_fault_of_any_kind_of_batch_is_noticed(way, is_meant) -> None:
    runner, own = changed_runner(way, torch.float32, is_meant, 1e-3)
    with pytest.raises(UnsupportedModel, match="differ from its own"):
        check_model(runner, own)


@pytest.mark.skipif(library.find() is None, reason="there are no native kernels")
def test_rows_that_share_a_trunk_read_it_once() -> None:
    """So that the path over trunks is taken, and not only that pages are alike."""
    runner, own = changed_runner(native_runner, torch.float32, lambda batch: False, 0.0)
    check_model(runner, own)
    kernels = library.find()
    attention = NativeAttention(kernels, library.Threads(kernels, 1), None)
    last = runner.way.batches[-1]
    assert shares_a_trunk(last)
    ragged = Ragged(*map(tensor_of, (last.row_starts, last.pages, last.page_starts)))
    q, kv = torch.zeros(last.n_tokens, 4, 16), torch.zeros(int(last.pages.max()) + 1, 2, 16)
    plan = attention.plan(ragged)
    attention.attend(q, kv, kv, plan, Heads(scale=1.0))
    (native,) = plan.native.values()
    assert native.n_reads < 2 * len(last.pages) / 2


@ways
def test_half_precision_is_held_to_the_models_own_error(way) -> None:
    """A fixed limit would let pass what errs several times as much."""
    model = make(torch.bfloat16)
    own = own_answers(model)
    assert own.error is not None
    assert 0.001 < own.error < 0.02
    check_model(way(model, 1), own)
    runner, own = changed_runner(way, torch.bfloat16, lambda batch: True, 5 * own.error)
    with pytest.raises(UnsupportedModel, match="differ from its own"):
        check_model(runner, own)


def test_a_large_model_is_checked_on_fewer_tokens_and_by_a_fixed_limit(monkeypatch) -> None:
    model = make(torch.bfloat16)
    n = len(own_answers(model).first)
    monkeypatch.setattr(self_check, "_LARGE", 1)
    own = own_answers(model)
    assert len(own.first) < n
    assert own.error is None
    check_model(fused_runner(model, 1), own)
