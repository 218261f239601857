"""Weights in eight bits: what they cost in accuracy, that replies do not depend on how a step is
cut, and who is told that there are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from engine.core.model.test_deterministic import make_model, make_requests, replies
from engine.core.model.test_fused import UNDERSTOOD, runner_error
from engine.core.model.test_fused import make_model as make_small
from tests_support import one_in

from sgc.kernels.cpu import library
from sgc.kernels.cpu.library import Isa
from sgc.runtime.engine.model import accuracy
from sgc.runtime.engine.model.accuracy import accuracy_of, own_text
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.runner import ModelRunner, Needs, UnsupportedModel
from sgc.runtime.engine.model.self_check import check_model, own_answers
from sgc.runtime.engine.model.ways import native_runner, native_runner_with, runner_factories

INT8 = Needs(weights="int8")
KV = Needs(kv="int8")
BOTH = Needs(weights="int8", kv="int8")
needs_kernels = pytest.mark.skipif(library.find() is None, reason=library.reason())


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def in_eight_bits(model) -> None:
    """Replaces the weights of a model's products, [n_out, n_in], by what eight bits leave."""
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            weight = module.weight.data
            scale = weight.float().abs().amax(1, keepdim=True).clamp(1e-30) / 127
            module.weight.data = ((weight.float() * (1 / scale)).round() * scale).to(weight.dtype)


@needs_kernels
@pytest.mark.parametrize(
    ("name", "changes"),
    [one for one in UNDERSTOOD if one[0] not in ("Mixtral", "Qwen3Moe", "GPT2")][::3],
)
def test_every_family_is_as_near_as_its_rounded_weights(name, changes) -> None:
    """In float32 nothing but the weights is rounded, so the logits are those of a model whose
    weights are. Of families whose products are all linear modules."""
    runner = native_runner(make_small(name, changes), 1, INT8)
    rounded = make_small(name, changes)
    if rounded.config.tie_word_embeddings:  # the table of embeddings stays as it is
        rounded.lm_head.weight = torch.nn.Parameter(rounded.lm_head.weight.detach().clone())
    in_eight_bits(rounded)
    assert runner_error(runner, own_answers(rounded)) < 1e-4


@needs_kernels
@pytest.mark.parametrize(
    ("isa", "dtype", "needs"),
    one_in(3, list(Isa), [torch.float32, torch.bfloat16], [INT8, KV, BOTH]),
    ids=lambda value: getattr(value, "options", None) or getattr(value, "name", str(value)).lower(),
)
def test_the_check_at_load_passes_with_every_instruction_set(isa, dtype, needs) -> None:
    native = library.find()
    if not native.has(isa):
        pytest.skip(f"this machine has no {isa.name}")
    best = native.isa
    native.limit(isa)
    try:
        for name, changes in [UNDERSTOOD[0], ("Mixtral", {"num_local_experts": 4})]:
            own = own_answers(make_small(name, changes, dtype))
            runner = native_runner(make_small(name, changes, dtype), 1, needs)
            check_model(runner, own)
            assert 1e-3 < runner_error(runner, own, 0.5) < 0.08
    finally:
        native.limit(best)


@needs_kernels
@pytest.mark.parametrize("needs", [INT8, KV], ids=lambda needs: needs.options)
def test_the_check_at_load_finds_what_is_wrong(needs) -> None:
    own = own_answers(make_small("Llama", {}))
    other = make_small("Llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 3.0}})
    with pytest.raises(UnsupportedModel, match="differ"):
        check_model(native_runner(other, 1, needs), own)


@pytest.mark.sweep
@needs_kernels
@pytest.mark.parametrize(
    ("name", "needs"), [("Qwen2", INT8), ("Mixtral", INT8), ("Qwen2", KV), ("Mistral", BOTH)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_reply_does_not_depend_on_what_runs_beside_it(name, needs, dtype) -> None:
    """Alone, in batches that share trunks, in chunks, with guesses, out of the cache, and after it
    gave way to others or its pages were evicted."""
    # K that differs by its last bits may be another integer; weights are what they are.
    needs = replace(needs, deterministic=dtype == torch.bfloat16 or needs.kv == "int8")
    runner = native_runner(make_model(name).to(dtype), 4000, needs)
    requests = make_requests(np.random.default_rng(5), 24)
    alone: dict[int, list] = {}
    for request in requests:
        alone |= replies(runner, [request])
    for options in ({}, {"chunk_tokens": 37}, {"pool_tokens": 900, "chunk_tokens": 128}):
        assert replies(runner, requests, **options) == alone


@needs_kernels
def test_products_take_half_the_memory() -> None:
    def packed_bytes(needs: Needs) -> int:
        runner = native_runner(make_small("Llama", {"hidden_size": 128}, torch.bfloat16), 1, needs)
        kept = runner.way._programs.logits._kept
        return sum(one.n_bytes for one in kept if isinstance(one, library.Packed))

    assert 0.5 <= packed_bytes(INT8) / packed_bytes(Needs()) < 0.6


@needs_kernels
def test_pages_take_half_the_memory() -> None:
    def token_bytes(needs: Needs) -> int:
        runner = native_runner(make_small("Llama", {}, torch.bfloat16), 1, needs)
        check_model(runner, own_answers(make_small("Llama", {}, torch.bfloat16)))
        return runner.pool.token_bytes

    # Two layers of K and V of two heads: 16 numbers each, and a scale.
    assert token_bytes(Needs()) == 2 * 2 * 2 * 16 * 2
    assert token_bytes(KV) == 2 * 2 * 2 * (16 + 4)


def measured(model, runner: ModelRunner, ids: np.ndarray) -> accuracy.Accuracy:
    return accuracy_of(runner, own_text(model, ids))


@needs_kernels
def test_what_eight_bits_cost_is_measured() -> None:
    ids = np.random.default_rng(0).integers(1, 199, 90)
    kinds = [("Llama", {})]
    for name, changes in kinds:
        exact = measured(
            make_small(name, changes), native_runner(make_small(name, changes), 1), ids
        )
        assert exact.n_tokens == 90
        assert exact.divergence < 1e-7  # of sums in another order: 7.5e-9 with AVX2
        assert exact.equal_share == 1
        assert exact.cross_entropy == pytest.approx(exact.own_cross_entropy, abs=1e-5)
        runner = native_runner(make_small(name, changes), 1, INT8)
        before = runner.pool
        found = measured(make_small(name, changes), runner, ids)
        assert runner.pool is before
        assert 1e-5 < found.divergence < 0.05
        assert 0.8 < found.equal_share <= 1
        assert found.own_cross_entropy == exact.own_cross_entropy
        # As computed at once, with the logits of the model whose weights are rounded.
        rounded = make_small(name, changes)
        in_eight_bits(rounded)
        logits = own_text(rounded, ids).logits
        right = torch.nn.functional.cross_entropy(logits[:-1], torch.from_numpy(ids[1:]))
        assert found.cross_entropy == pytest.approx(float(right), abs=1e-3)


@needs_kernels
def test_it_is_measured_at_load_where_it_is_asked_for(tmp_path) -> None:
    make_small("Llama", {}).save_pretrained(tmp_path)
    ids = np.arange(1, 300)  # of which the model knows those below 199
    plain = load_model(str(tmp_path), pool_tokens=9, text=ids)
    assert plain.accuracy is None
    assert plain.weights_name == "float32"
    runner = load_model(str(tmp_path), pool_tokens=9, needs=INT8, text=ids)
    assert runner.accuracy is not None
    assert runner.accuracy.n_tokens == 198
    assert runner.weights_name == "int8"
    assert runner.model is None


def test_where_our_kernels_cannot_it_is_refused(tmp_path, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(library, "find", lambda: None)
        patch.setattr(library, "reason", lambda: "there is no C++ compiler")
        make_small("Llama", {}).save_pretrained(tmp_path)
        with pytest.raises(UnsupportedModel, match=r"--weights int8 needs .* no C\+\+ compiler"):
            load_model(str(tmp_path), needs=INT8)
    sizes = {"vocab_size": 99, "n_embd": 32, "n_layer": 1, "n_head": 4, "rotary_dim": 8}
    other = transformers.AutoModelForCausalLM.from_config(transformers.GPTJConfig(**sizes))
    with pytest.raises(UnsupportedModel, match=r"GPTJForCausalLM .* cannot do --weights int8"):
        runner_factories(other, INT8)
    with pytest.raises(UnsupportedModel, match=r"cannot do --weights int8 and --kv int8"):
        runner_factories(other, BOTH)


@needs_kernels
def test_a_dtype_that_our_kernels_lack_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match="not compute in float16; choose --dtype"):
        native_runner_with(INT8)(make_small("Llama", {}, torch.float16), 1)
