"""Two dozen architectures, tiny and random, in float32: over scattered and shared pages, in
chunks, in mixed batches and in a pool too small for them, each says what it says by itself.
And those that would not are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import transformers
from engine.core.runners import logits_of, runner_of

from sgc.kernels.cpu import library
from sgc.runtime.engine.model.forward import Row, flatten
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.runner import UnsupportedModel
from sgc.runtime.engine.model.self_check import check_model, own_answers
from sgc.runtime.engine.requests.request import Generate
from sgc.runtime.engine.step.core import EngineCore

VOCAB = 199
TOKENS = {"vocab_size": VOCAB, "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
COMMON = {
    **TOKENS,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,  # so that the logits are as far apart as a trained model's
}
OLD = {**TOKENS, "n_embd": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
LATENT = {
    "num_key_value_heads": 4,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}
EXPERTS = {
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
}
WINDOW = {"sliding_window": 8}
SLIDING_THEN_FULL = {"layer_types": ["sliding_attention", "full_attention"]}

# name -> transformers' prefix of its classes, what differs from COMMON
SERVED = {
    "llama": ("Llama", {}),
    "llama, llama3 rope": ("Llama", {"rope_parameters": LLAMA3_ROPE}),
    "qwen2": ("Qwen2", {}),
    "qwen2, sliding": ("Qwen2", {**WINDOW, **SLIDING_THEN_FULL, "use_sliding_window": True}),
    "qwen3": ("Qwen3", {}),
    "mistral, sliding": ("Mistral", WINDOW),
    "gemma": ("Gemma", {}),
    "gemma2": ("Gemma2", {**WINDOW, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 2.0}),
    "gemma3_text": ("Gemma3Text", {**WINDOW, **SLIDING_THEN_FULL, "query_pre_attn_scalar": 16}),
    "gpt2": ("GPT2", OLD),
    "phi": ("Phi", {}),
    "phi3": ("Phi3", {}),
    "gpt_neox": ("GPTNeoX", {}),
    "opt": ("OPT", {"ffn_dim": 64, "word_embed_proj_dim": 32, "init_std": 0.3}),
    "olmo2": ("Olmo2", {}),
    "granite": ("Granite", {}),
    "cohere": ("Cohere", {"logit_scale": 1.0}),
    "stablelm": ("StableLm", {}),
    "starcoder2": ("Starcoder2", {}),
    "gpt_oss": ("GptOss", {**WINDOW, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen3_moe": ("Qwen3Moe", {"num_experts": 4, "num_experts_per_tok": 2}),
    "mixtral": ("Mixtral", {"num_local_experts": 4}),
    "deepseek_v3": ("DeepseekV3", {**LATENT, **EXPERTS}),
    "smollm3": ("SmolLM3", {"no_rope_layers": [1, 0]}),
}
OWN_CODE = {"gpt_oss", "deepseek_v3"}
"""Those that their own modules compute, but for attention."""
NO_INTERFACE = "it does not attend through transformers' attention interface"
SILENT = "2 of its 2 layers do not attend through transformers' attention interface"
REFUSED = {
    "falcon": ("Falcon", {**TOKENS, "num_hidden_layers": 2}, NO_INTERFACE),
    "gptj": ("GPTJ", {**OLD, "rotary_dim": 8}, NO_INTERFACE),
    "bloom": ("Bloom", {"n_layer": 2, "n_head": 4}, SILENT),
}


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """For models as small as these, more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_model(prefix: str, changes: dict) -> torch.nn.Module:
    """The same weights each time."""
    torch.manual_seed(0)
    base = {} if changes.keys() >= TOKENS.keys() else COMMON
    config = getattr(transformers, f"{prefix}Config")(**{**base, **changes})
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


class Plain:
    """The model by itself, one whole sequence at a time."""

    def __init__(self, prefix: str, changes: dict) -> None:
        self._model = make_model(prefix, changes)
        self._model.set_attn_implementation("eager")

    @torch.inference_mode()
    def logits(self, tokens: np.ndarray) -> torch.Tensor:
        """[n_tokens, vocab]"""
        ids = torch.from_numpy(np.asarray(tokens, np.int64))[None]
        return self._model(ids, attention_mask=torch.ones_like(ids), use_cache=False).logits[0]


def worst_error(got: torch.Tensor, right: torch.Tensor) -> float:
    """Relative, of the position that is furthest off."""
    spread = (right - right.mean(-1, keepdim=True)).norm(dim=-1)
    return float(((got - right).norm(dim=-1) / spread).max())


# -- logits over pages --


@dataclass
class Sequence:
    """It begins at `start`, when `after` has come to `n_after`; its pages are `after`'s before."""

    tokens: np.ndarray
    pages: np.ndarray
    start: int = 0
    after: int = 0
    n_after: int = 0

    def row(self, start: int, end: int) -> Row:
        return Row(self.tokens[start:end], start, self.pages[:end], np.arange(end - start))


def make_sequences(rng: np.random.Generator) -> list[Sequence]:
    """One; one that shares its first 17 pages; one alone; one in that one's pages, when it ends."""
    pages, tokens = rng.permutation(100), rng.integers(1, VOCAB, 130)
    shared = np.concatenate([tokens[:17], tokens[40:60]])
    return [
        Sequence(tokens[:40], pages[:40]),
        Sequence(shared, np.concatenate([pages[:17], pages[40:60]]), 17, 0, 17),
        Sequence(tokens[60:90], pages[60:90]),
        Sequence(tokens[90:120], rng.permutation(pages[60:90]), 0, 2, 30),
    ]


def run_in_pieces(runner, sequences: list[Sequence], rng: np.random.Generator) -> list:
    """Prompts, chunks and single tokens side by side, as they come; logits of every position."""
    done = [s.start for s in sequences]
    found: list[list[torch.Tensor]] = [[] for _ in sequences]
    while any(n < len(s.tokens) for n, s in zip(done, sequences, strict=True)):
        pieces = []
        for i, s in enumerate(sequences):
            n = min(int(rng.choice([0, 1, 1, 2, 5, 11])), len(s.tokens) - done[i])
            if n and done[s.after] >= s.n_after:
                pieces.append((i, done[i], done[i] + n))
        if pieces:
            logits = logits_of(runner, flatten([sequences[i].row(a, b) for i, a, b in pieces]))
            parts = logits.split([b - a for _, a, b in pieces])
            for (i, _, b), part in zip(pieces, parts, strict=True):
                found[i].append(part)
                done[i] = b
    return [torch.cat(parts) for parts in found]


@pytest.mark.sweep
@pytest.mark.parametrize("name", SERVED)
def test_logits_over_pages_are_the_models_own(name) -> None:
    """In chunks over scattered, shared and reused pages; and a wrong page would be seen."""
    plain, runner = Plain(*SERVED[name]), runner_of(make_model(*SERVED[name]), 100)
    ours = "native" if library.find() else "fused"
    assert runner.way.name == ("transformers" if name in OWN_CODE else ours)
    rng = np.random.default_rng(1)
    sequences = make_sequences(rng)
    for s, logits in zip(sequences, run_in_pieces(runner, sequences, rng), strict=True):
        assert worst_error(logits, plain.logits(s.tokens)[s.start :]) < 1e-5
    first, right = sequences[0], plain.logits(sequences[0].tokens)
    first.pages[36] = sequences[3].pages[5]
    assert worst_error(logits_of(runner, flatten([first.row(39, 40)])), right[-1:]) > 1e-3


# -- greedy tokens of the whole engine --


def make_prompts() -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    shared = rng.integers(1, VOCAB, 16)
    tails = [rng.integers(1, VOCAB, n) for n in (0, 1, 3, 9, 15)]
    alone = [rng.integers(1, VOCAB, n) for n in (2, 11, 30)]
    return [*(np.concatenate([shared, tail]) for tail in tails), *alone]


@pytest.mark.sweep
@pytest.mark.parametrize("name", SERVED)
def test_greedy_tokens_are_the_models_own_when_memory_is_short(lab, name) -> None:
    """With evictions and preemptions. A token is right if none is likelier by more than 1e-4."""
    plain, n_pages, n_new = Plain(*SERVED[name]), 56, 12
    runner = runner_of(make_model(*SERVED[name]), n_pages)
    core = EngineCore(
        runner, pool_tokens=n_pages, max_context=200, vocab_size=VOCAB, chunk_tokens=24, check=True,
        lookup=False,  # with it, some end before memory is short
    )  # fmt: skip
    prompts = make_prompts()
    requests = [lab.request(i, prompt, Generate(n_new)) for i, prompt in enumerate(prompts)]
    outcomes = lab.drive(core, requests, per_step=2)
    said: set[tuple[int, ...]] = set()
    for i, prompt in enumerate(prompts):
        ids = outcomes[i].ids
        assert len(ids) == n_new
        logits = plain.logits([*prompt, *ids])[len(prompt) - 1 : -1]
        chosen = logits[torch.arange(n_new), torch.tensor(ids)]
        assert float((logits.max(-1).values - chosen).max()) < 1e-4
        said.add(tuple(ids))
    stats = core.stats()
    assert stats.preemptions > 0
    assert stats.evicted_tokens > 0
    assert stats.counters.cached_tokens > 0
    assert len(said) == len(prompts), "a model that always says the same proves nothing"


# -- what is refused --


@pytest.mark.parametrize("name", REFUSED)
def test_what_keeps_its_attention_to_itself_is_refused_by_name(tmp_path, name) -> None:
    prefix, changes, words = REFUSED[name]
    config = {"vocab_size": VOCAB, "hidden_size": 32, "num_attention_heads": 4, **changes}
    make_model(prefix, {**TOKENS, **config}).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModel, match=f"{prefix}ForCausalLM is not supported: {words}"):
        load_model(str(tmp_path))


def test_llama4_is_limited_to_its_chunk(tmp_path) -> None:
    """Its chunks are in the mask alone: within the first its logits are right, past it wrong."""
    about = ("Llama4Text", {"attention_chunk_size": 8, "intermediate_size_mlp": 64})
    make_model(*about).save_pretrained(tmp_path)
    runner = load_model(str(tmp_path), pool_tokens=20)
    assert runner.max_context == 8
    tokens = np.arange(1, 21)
    got = logits_of(runner, flatten([Row(tokens, 0, np.arange(20), np.arange(20))]))
    right = Plain(*about).logits(tokens)
    assert worst_error(got[:8], right[:8]) < 1e-5
    assert worst_error(got[8:], right[8:]) > 1e-2


@pytest.mark.parametrize(
    ("name", "settings", "longest"),
    [
        ("Qwen2Moe", {"use_sliding_window": True, "layer_types": ["sliding_attention"] * 2,
                      "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
                      "shared_expert_intermediate_size": 16}, 129),
        ("Phimoe", {"num_local_experts": 4, "num_experts_per_tok": 2}, 129),
        ("Mistral", {}, 512),
    ],
)  # fmt: skip
def test_a_window_that_the_mask_alone_knows_limits_the_context(name, settings, longest) -> None:
    """Such a model never tells its attention function of it; within it nothing differs."""
    common = {
        "vocab_size": 199, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "bos_token_id": None,
        "max_position_embeddings": 512, "eos_token_id": None, "pad_token_id": 0,
        "sliding_window": 129, **settings,
    }  # fmt: skip
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**common)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    own = own_answers(model)
    runner = runner_of(model, 1)
    check_model(runner, own)
    assert runner.max_context == longest
