"""Real architectures, tiny and random: greedy tokens equal transformers' own `generate`, with
and without the cache, alone and in mixed batches, with chunks and evictions forced.

Compared up to the first place where the plain model's two best logits are within 1e-4.
"""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
import torch
import transformers
from engine.core.runners import runner_of
from tests_support import one_in

from sgc.runtime.engine.model.loading import default_pool_tokens, load_model
from sgc.runtime.engine.model.runner import ModelRunner, UnsupportedModel
from sgc.runtime.engine.model.self_check import check_model, own_answers
from sgc.runtime.engine.model.ways import packed_runner, transformers_runner
from sgc.runtime.engine.requests.request import Commit, Generate, SamplingParams, Score
from sgc.runtime.engine.step.core import EngineCore

VOCAB = 199
COMMON = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
    "initializer_range": 0.3,
}
CONFIGS = {
    "Llama": {},
    "Qwen2": {},
    "Qwen3": {},
    "Mistral": {"sliding_window": 8},
    "Gemma": {},
    "Gemma2": {"sliding_window": 8, "query_pre_attn_scalar": 8},
    "GptOss": {"sliding_window": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512},
}
MODELS = ["Llama", "Qwen2", "Qwen3", "Mistral", "Gemma", "Gemma2", "GPT2"]
N_NEW = 12


def make_model(name: str, dtype: torch.dtype = torch.float32):
    torch.manual_seed(0)
    common = COMMON if name != "GPT2" else {k: v for k, v in COMMON.items() if "size" not in k}
    if name == "GPT2":
        common = {"vocab_size": VOCAB, "bos_token_id": None, "eos_token_id": None}
    config = getattr(transformers, f"{name}Config")(**{**common, **CONFIGS[name]})
    return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)


def prompts() -> list[list[int]]:
    rng = np.random.default_rng(7)
    shared = rng.integers(1, VOCAB, 24).tolist()
    tails = [rng.integers(1, VOCAB, n).tolist() for n in (1, 3, 17)]
    alone = [rng.integers(1, VOCAB, n).tolist() for n in (1, 5, 31)]
    return [shared, *(shared + tail for tail in tails), *alone, shared]


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """For models as small as these, more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def expected(name: str) -> list[tuple[list[int], int]]:
    """For each prompt, what transformers generates, and how much of it is beyond doubt."""
    model = make_model(name).eval()
    model.set_attn_implementation("eager")
    out = []
    for prompt in prompts():
        result = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=N_NEW,
            min_new_tokens=N_NEW,
            do_sample=False,
            return_dict_in_generate=True,
            output_logits=True,
        )
        best = torch.stack(result.logits)[:, 0].topk(2).values
        doubtful = torch.nonzero(best[:, 0] - best[:, 1] < 1e-4).flatten().tolist()
        ids = result.sequences[0, len(prompt) :].tolist()
        out.append((ids, doubtful[0] if doubtful else N_NEW))
    return out


@cache
def shared_runner(name: str) -> ModelRunner:
    return runner_of(make_model(name), 2000)


def make_core(name: str, pool: int = 2000, chunk: int = 512) -> EngineCore:
    return EngineCore(
        shared_runner(name),
        pool_tokens=pool,
        max_context=512,
        vocab_size=VOCAB,
        chunk_tokens=chunk,
        check=True,
    )


def assert_generates(name: str, lab, core: EngineCore, which: list[int], extra=()) -> None:
    todo = prompts()
    requests = [lab.request(i, todo[i], Generate(N_NEW)) for i in which]
    outcomes = lab.drive(core, [*requests, *extra], per_step=3)
    for i in which:
        ids, n = expected(name)[i]
        assert outcomes[i].ids[:n] == ids[:n], f"prompt {i}"
        assert len(outcomes[i].ids) == N_NEW


@pytest.mark.slow
def test_the_comparison_means_something() -> None:
    """Some models are told apart by their text, and most of it is beyond doubt."""
    for name in MODELS:
        assert np.mean([n for _, n in expected(name)]) > N_NEW / 2
    assert expected("Llama") != expected("Qwen3")


@pytest.mark.parametrize("name", one_in(3, MODELS))
def test_greedy_alone_is_what_transformers_generates(lab, name) -> None:
    for i in (0, 3, 5):
        assert_generates(name, lab, make_core(name), [i])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("chunk", [5, 512])
def test_greedy_in_a_mixed_batch(lab, name, chunk) -> None:
    core = make_core(name, chunk=chunk)
    sampled = SamplingParams(temperature=1.0)
    extra = [
        lab.request(100, prompts()[2], Generate(9, sampled)),
        lab.request(101, prompts()[3], Score(((5, 6, 7), (5, 8), (9,)))),
        lab.request(102, prompts()[3][:30], Commit()),
    ]
    everything = list(range(len(prompts())))
    assert_generates(name, lab, core, everything, extra)
    assert_generates(name, lab, core, everything)  # and again, from the cache
    assert core.stats().counters.cached_tokens > 100


@pytest.mark.parametrize("name", MODELS)
def test_greedy_in_a_pool_of_a_tenth(lab, name) -> None:
    core = make_core(name, pool=54, chunk=16)
    others = np.random.default_rng(8).integers(1, VOCAB, (16, 30)).tolist()
    extra = [lab.request(100 + i, other, Generate(3)) for i, other in enumerate(others)]
    assert sum(map(len, prompts())) + sum(map(len, others)) >= 10 * 54
    assert_generates(name, lab, core, list(range(len(prompts()))), extra)
    assert core.stats().evicted_tokens > 0
    assert core.stats().preemptions > 0


@pytest.mark.parametrize("name", ["Llama", "Mistral"])
def test_scores_are_the_models_own(lab, name) -> None:
    model = make_model(name).eval()
    prompt, choices = prompts()[2], ((5, 6, 7), (5, 8), (9,), (5, 6))
    outcome = lab.drive(make_core(name, chunk=13), [lab.request(1, prompt, Score(choices))])[1]
    for choice, got in zip(choices, outcome.last.choices, strict=True):
        ids = torch.tensor([[*prompt, *choice]])
        with torch.inference_mode():
            logprobs = model(ids).logits[0].double().log_softmax(-1)
        right = [float(logprobs[len(prompt) - 1 + i, t]) for i, t in enumerate(choice)]
        np.testing.assert_allclose(got, right, atol=1e-4)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "dtype"), one_in(2, [*MODELS, "GptOss"], [torch.float32, torch.bfloat16])
)
def test_the_self_check_accepts_what_is_right(name, dtype) -> None:
    for way in (runner_of, packed_runner, transformers_runner):
        model = make_model(name, dtype)
        own = own_answers(model)
        check_model(way(model, 1), own)


@pytest.mark.parametrize(
    ("name", "ignored"),
    [("Mistral", "sliding_window"), ("GptOss", "s_aux"), ("Gemma", "scaling")],
)
def test_the_self_check_refuses_what_attends_otherwise(monkeypatch, name, ignored) -> None:
    from sgc.runtime.engine.model import transformers_model as stock

    def deaf(*args, **kwargs):
        kwargs[ignored] = 0.01 if ignored == "scaling" else None
        return stock._attend(*args, **kwargs)

    monkeypatch.setitem(transformers.AttentionInterface._global_mapping, stock.ATTENTION, deaf)
    model = make_model(name)
    own = own_answers(model)
    runner = transformers_runner(model, 1)
    with pytest.raises(UnsupportedModel, match=f"{name}ForCausalLM is not supported: its logits"):
        check_model(runner, own)


def save(folder, model) -> str:
    model.save_pretrained(folder)
    return str(folder)


def test_models_that_do_not_ask_for_attention_are_refused_by_name(tmp_path) -> None:
    config = transformers.BloomConfig(vocab_size=VOCAB, hidden_size=32, n_layer=2, n_head=4)
    folder = save(tmp_path / "bloom", transformers.AutoModelForCausalLM.from_config(config))
    with pytest.raises(UnsupportedModel, match="BloomForCausalLM is not supported: 2 of its 2"):
        load_model(folder)
    config = transformers.FalconConfig(
        vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4
    )
    folder = save(tmp_path / "falcon", transformers.AutoModelForCausalLM.from_config(config))
    with pytest.raises(UnsupportedModel, match="FalconForCausalLM is not supported: it does not"):
        load_model(folder)


def test_an_activation_that_there_is_not_is_told_by_its_field(tmp_path) -> None:
    folder = save(tmp_path / "llama", make_model("Llama"))
    path = tmp_path / "llama" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "hidden_act": "foo"}))
    with pytest.raises(UnsupportedModel, match=r"config\.json says hidden_act 'foo'"):
        load_model(folder)


def test_loading_from_a_folder(lab, tmp_path) -> None:
    folder = save(tmp_path / "llama", make_model("Llama"))
    runner = load_model(folder, pool_tokens=300, max_context=256)
    assert (runner.pool_tokens, runner.max_context, runner.vocab_size) == (300, 256, VOCAB)
    assert runner.dtype_name == "float32"
    core = EngineCore(runner, pool_tokens=300, max_context=256, vocab_size=VOCAB)
    outcome = lab.drive(core, [lab.request(0, prompts()[0], Generate(N_NEW))])[0]
    ids, n = expected("Llama")[0]
    assert outcome.ids[:n] == ids[:n]
    assert load_model(folder, dtype="bfloat16", pool_tokens=9).dtype_name == "bfloat16"
    with pytest.raises(ValueError, match="above the model's 512"):
        load_model(folder, max_context=1000)
    with pytest.raises(ValueError, match="dtype must be"):
        load_model(folder, dtype="int3")


def test_pickled_weights_are_not_loaded(tmp_path) -> None:
    model = make_model("Llama")
    folder = save(tmp_path / "llama", model)
    torch.save(model.state_dict(), tmp_path / "llama" / "pytorch_model.bin")
    (tmp_path / "llama" / "model.safetensors").unlink()
    with pytest.raises((OSError, UnsupportedModel), match="safetensors"):
        load_model(folder)


def test_contexts_that_depend_on_the_batch_are_cut() -> None:
    from sgc.runtime.engine.model.runner import max_context_of

    config = transformers.LlamaConfig(
        max_position_embeddings=4096,
        rope_parameters={
            "rope_type": "dynamic",
            "factor": 2.0,
            "rope_theta": 10000.0,
            "original_max_position_embeddings": 512,
        },
    )
    assert max_context_of(config) == 512
    assert max_context_of(transformers.LlamaConfig(max_position_embeddings=4096)) == 4096
    assert max_context_of(transformers.Llama4TextConfig(attention_chunk_size=64)) == 64


def test_the_default_pool_is_bounded() -> None:
    assert default_pool_tokens(1) == 65536
    assert default_pool_tokens(1 << 60) == 1024
