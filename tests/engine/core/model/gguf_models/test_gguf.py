"""GGUF files of small random models: loaded as the models that they were written from."""

from __future__ import annotations

import errno
import json
import logging
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engine.core.model.gguf_models.making import (
    BYTE_LEVEL,
    TOKENS,
    WIDE,
    save_gguf,
    tensors_of,
    wide,
)
from engine.core.model.test_fused import ALTERNATING, EXPERTS, LLAMA3, LONGROPE, YARN, make_model

from sgc.errors import LoadError
from sgc.runtime.engine.model.checkpoints.gguf.files import files_of
from sgc.runtime.engine.model.checkpoints.gguf.unpack import unpack
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.models import resolve
from sgc.runtime.engine.model.self_check import own_logits
from sgc.runtime.engine.model.transformers_files import load_transformers_model
from sgc.runtime.engine.text.template_child import read_template, start_probe
from sgc.runtime.engine.text.tokenizer import load_tokenizer

pytest.importorskip("gguf", reason="needs sgc[gguf]")
slow = pytest.mark.slow
IDS = torch.arange(30)[None] % 64
SHARED = {**EXPERTS, "shared_expert_intermediate_size": 24, "num_hidden_layers": 2}
PARTLY = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
GEMMA3_ROPE = {"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
               "full_attention": {**LINEAR, "rope_theta": 1e6}}  # fmt: skip
SIX = {"num_hidden_layers": 6, "sliding_window": 8, "query_pre_attn_scalar": 16}


def scaling(kind: str, factor: float, original: int | None = None) -> dict[str, Any]:
    return {"llama.rope.scaling.type": kind, "llama.rope.scaling.factor": factor,
            "llama.rope.scaling.original_context_length": original}  # fmt: skip


MODELS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "llama": ("Llama", {"tie_word_embeddings": True}, {}),
    "llama with biases": ("Llama", {"attention_bias": True, "mlp_bias": True}, {}),
    "yarn": ("Llama", {"rope_parameters": YARN}, scaling("yarn", 4.0, 128)),
    "linear": ("Llama", {"rope_parameters": LINEAR}, scaling("linear", 4.0)),
    "qwen2": ("Qwen2", {"head_dim": 8}, {}),
    "qwen3": ("Qwen3", {}, {}),
    "qwen2moe": ("Qwen2Moe", {**SHARED, "head_dim": 8, "norm_topk_prob": False}, {}),
    "qwen3moe": ("Qwen3Moe", {**EXPERTS, "norm_topk_prob": True}, {}),
    "gemma2": ("Gemma2", {**ALTERNATING, "query_pre_attn_scalar": 16}, {}),
    "gemma3": ("Gemma3Text", {**SIX, "rope_parameters": GEMMA3_ROPE},
               {"gemma3.rope.scaling.type": "linear", "gemma3.rope.scaling.factor": 4.0}),
    "phi3": ("Phi3", {"pad_token_id": 0, "head_dim": 8, "sliding_window": 8,
                      "rope_parameters": PARTLY}, {}),
    "phi4": ("Phi3", {"pad_token_id": 0, "head_dim": 8, "sliding_window": None},
             {"phi3.attention.sliding_window": 0}),
}  # fmt: skip
QUICK = ("llama", "qwen3moe")


def folder_of(path: Path) -> Path:
    """Its model folder, made in this process."""
    folder = path.with_name(f"{path.stem} unpacked")
    folder.mkdir()
    unpack(files_of(path), folder)
    return folder


def logits(model: Any) -> torch.Tensor:
    return own_logits(model, IDS)


def is_close(a: torch.Tensor, b: torch.Tensor, limit: float = 1e-5) -> bool:
    return float((a - b).norm() / b.norm()) < limit


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=slow) for name in MODELS]
)
def test_it_is_the_model_that_was_written(name: str, tmp_path: Path) -> None:
    """Every setting and every tensor, as its logits tell."""
    kind, changes, values = MODELS[name]
    model = make_model(kind, changes)
    path = tmp_path / "model.gguf"
    save_gguf(path, model, values=values)
    found = load_transformers_model(str(folder_of(path)), "auto")
    for key, weight in model.state_dict().items():
        assert torch.allclose(found.state_dict()[key], weight, rtol=1e-6, atol=1e-6), key
    assert is_close(logits(found), logits(model))


CODED = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS",
         "TQ1_0", "TQ2_0", "MXFP4")  # fmt: skip


@pytest.mark.parametrize("kind", ["F16", pytest.param("BF16", marks=slow), "Q8_0",
                                  pytest.param("Q4_0", marks=slow), "Q4_K",
                                  pytest.param("Q6_K", marks=slow),
                                  *(pytest.param(name, marks=slow) for name in
                                    ("Q2_K", "Q3_K", "Q5_K", *CODED))])  # fmt: skip
def test_quantized_weights_are_what_their_bytes_stand_for(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As transformers' own reading of the bytes, or as they are defined."""
    model = make_model("Qwen3", WIDE)
    path = tmp_path / "model.gguf"
    packed = save_gguf(path, model, kind=kind, values={"general.file_type": 15})
    with caplog.at_level(logging.WARNING):
        found = load_transformers_model(str(folder_of(path)), "float32")
    ours = tensors_of(found)
    for name, (data, _) in packed.items():
        right = wide(tuple(ours[name].shape), data, kind).float()
        assert torch.allclose(ours[name], right, rtol=1e-6, atol=1e-7), name
        assert float(right.abs().max()) > 0
    is_told = "model.gguf is quantized (Q4_K_M): its weights are widened to float32" in caplog.text
    assert is_told == (kind not in ("F16", "BF16"))


@slow
def test_frequencies_that_are_stored_as_factors(tmp_path: Path) -> None:
    """Of Llama 3.1's scaling, a file has nothing but these."""
    model = make_model("Llama", {"rope_parameters": LLAMA3})
    plain = 1 / (10000.0 ** (np.arange(0, 16, 2) / 16))
    factors = torch.from_numpy(plain).float() / model.model.rotary_emb.inv_freq
    assert float(factors.max()) > 1
    path = tmp_path / "model.gguf"
    save_gguf(path, model, tensors={"rope_freqs.weight": factors})
    folder = folder_of(path)
    assert is_close(logits(load_transformers_model(str(folder), "auto")), logits(model))
    assert load_model(str(folder), pool_tokens=64).max_context == 512


@slow
def test_longrope(tmp_path: Path) -> None:
    changes = {"rope_parameters": LONGROPE, "original_max_position_embeddings": 64}
    model = make_model("Phi3", {**changes, "head_dim": 8, "pad_token_id": 0})
    lists = {f"rope_factors_{name}.weight": torch.tensor(LONGROPE[f"{name}_factor"])
             for name in ("long", "short")}  # fmt: skip
    path = tmp_path / "model.gguf"
    values = {"phi3.rope.scaling.original_context_length": 64}
    save_gguf(path, model, tensors=lists, values=values)
    found = load_transformers_model(str(folder_of(path)), "auto")
    assert is_close(logits(found), logits(model))


def test_parts_of_a_split_are_one_model(tmp_path: Path) -> None:
    model = make_model("Llama", {})
    names = list(tensors_of(model))
    for i in range(2):
        save_gguf(
            tmp_path / f"m-{i + 1:05}-of-00002.gguf", model,
            tensors=dict.fromkeys(names[1 - i::2]),
            values={"split.no": i, "split.count": 2, "split.tensors.count": len(names)},
        )  # fmt: skip
    assert [path.name[2:7] for path in files_of(tmp_path)] == ["00001", "00002"]
    found = load_transformers_model(str(folder_of(tmp_path / "m-00002-of-00002.gguf")), "auto")
    assert torch.equal(logits(found), logits(model))
    (tmp_path / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(LoadError, match=r"m-00002-of-00002\.gguf is missing: the model is in 2"):
        files_of(tmp_path)


def test_vocabulary_template_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    template = "{{ messages[0].content }}"
    save_gguf(path, make_model("Llama", {}), vocabulary={**BYTE_LEVEL, "chat_template": template})
    folder = folder_of(path)
    tokenizer = load_tokenizer(folder)
    assert tokenizer.eos_ids == (0, 1)
    assert tokenizer.special_tokens == ("<|end|>", "<|turn|>")
    ids = tokenizer.encode_continuation("the an<|turn|>")
    assert [TOKENS[i] for i in ids] == ["t", "he", "Ġan", "<|turn|>"]
    found = read_template(folder)
    assert found is not None
    assert found.source == template


@slow
@pytest.mark.parametrize("source", ["{% for i in range(10**9) %}x{% endfor %}",
                                    "{{ ''.__class__.__mro__ }}"])  # fmt: skip
def test_a_template_is_as_bounded_as_a_folders(source: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    save_gguf(path, make_model("Llama", {}), vocabulary={**BYTE_LEVEL, "chat_template": source})
    probe = start_probe(folder_of(path))
    assert probe is not None
    chat = probe.result()
    assert not chat.from_model
    assert "chat template is not used" in chat.notes[0]


def test_sentencepiece(tmp_path: Path) -> None:
    """Its merges follow from the scores; a beginning is put before a text unless the file says
    otherwise."""
    tokens = ["<unk>", "<s>", "</s>", *"▁the", "he", "▁t", "▁the"]
    vocabulary = {
        "ggml.model": "llama", "ggml.pre": "default", "ggml.tokens": tokens,
        "ggml.scores": [0.0] * 3 + [-10.0] * 4 + [-1.0, -2.0, -3.0],
        "ggml.token_type": [2, 3, 3] + [1] * 7,
        "ggml.bos_token_id": 1, "ggml.eos_token_id": 2, "ggml.unknown_token_id": 0,
    }  # fmt: skip
    path = tmp_path / "model.gguf"
    save_gguf(path, make_model("Llama", {}), vocabulary=vocabulary)
    tokenizer = load_tokenizer(folder_of(path))
    assert tokenizer.prefix_ids == (1,)
    assert [tokens[i] for i in tokenizer.encode_continuation(" the the")] == ["▁the", "▁the"]


def values(**changed: Any) -> dict[str, Any]:
    return {f"llama.{key.replace('__', '.')}": value for key, value in changed.items()}


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = {
    "a setting that is not known": (
        values(expert_count=8), {}, {}, r"its setting llama.expert_count \(8\) is not known"),
    "a scaling that is not known": (
        values(rope__scaling__type="su"), {}, {}, r"rope.scaling.type \('su'\) is not known"),
    "part of a head is rotated": (
        values(rope__dimension_count=8), {}, {}, r"rope.dimension_count \(8\)"),
    "no layers are said": (values(block_count=None), {}, {}, "does not say llama.block_count"),
    "layers without end": (values(block_count=2**30), {}, {}, "num_hidden_layers is 1073741824"),
    "a size without end": (values(feed_forward_length=2**30), {}, {}, "intermediate_size is"),
    "a size that is none": (values(attention__head_count="x"), {}, {}, "'x', no size"),
    "sizes that differ": (values(feed_forward_length=65), {}, {}, "of another shape"),
    "a tensor is missing": ({}, {}, {"blk.1.ffn_up.weight": None}, "1 missing .'blk.1.ffn_up"),
    "a tensor too many": ({}, {}, {"blk.1.x.weight": torch.ones(3)}, "1 not the model's .'blk.1.x"),
    "no embeddings": ({}, {}, {"token_embd.weight": None}, "it has no token_embd.weight"),
    "factors of another size": (
        {}, {}, {"rope_freqs.weight": torch.ones(3)}, "has 3 factors, of default rotary"),
    "no vocabulary": ({}, {"ggml.tokens": None}, {}, "it has no tokenizer"),
    "another vocabulary": ({}, {"ggml.model": "rwkv"}, {}, "of the kind 'rwkv'; gpt2 and llama"),
    "another way to split": ({}, {"ggml.pre": "viking"}, {}, r"splits texts \('viking'\) is not"),
    "more tokens than rows": (
        {}, {"ggml.tokens": [f"t{i}" for i in range(200)]}, {}, "200 tokens, and its table 199"),
    "merges of three": ({}, {"ggml.merges": ["a b c"]}, {}, "a merge of its tokenizer is not"),
    "merges of nothing": ({}, {"ggml.merges": ["q q"]}, {}, "vocabulary cannot be used"),
    "types of fewer": ({}, {"ggml.token_type": [1]}, {}, "it has 1 token_type for 39 tokens"),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [each if i % 4 == 0 else pytest.param(each, marks=slow)
             for i, each in enumerate(REFUSED)]
)  # fmt: skip
def test_what_is_not_known_is_refused_by_name(name: str, tmp_path: Path) -> None:
    settings, vocabulary, tensors, why = REFUSED[name]
    path = tmp_path / "model.gguf"
    save_gguf(path, make_model("Llama", {}), values=settings,
              vocabulary={**BYTE_LEVEL, **vocabulary}, tensors=tensors)  # fmt: skip
    with pytest.raises(LoadError, match=why) as caught:
        load_transformers_model(str(folder_of(path)), "auto")
    assert str(tmp_path) in str(caught.value)


def test_another_architecture_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    save_gguf(path, make_model("Llama", {}), values={"general.architecture": None})
    data = path.read_bytes().replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0mamba", 1)
    path.write_bytes(data)
    with pytest.raises(LoadError, match=r"architecture 'mamba', which is not read.*llama, qwen2"):
        folder_of(path)


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sgc.runtime.engine.model.checkpoints.gguf import folder

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(folder, "_make", full)
    path = tmp_path / "Tea.gguf"
    path.write_bytes(b"GGUF")
    with pytest.raises(LoadError, match=r"cannot be kept in .*: No space left on device"):
        resolve(str(path))


def test_a_folder_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a child process, whose error is told as ours."""
    from sgc.runtime.engine.model.checkpoints.gguf import folder

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "Tea-Q4_0.gguf"
    save_gguf(path, make_model("Llama", {}))
    source = resolve(str(path))
    assert source.name == "Tea-Q4_0"
    assert source.folder == source.tokenizer_folder == resolve(str(tmp_path)).folder
    assert json.loads((source.folder / "config.json").read_text())["model_type"] == "llama"
    started = []
    monkeypatch.setattr(folder.subprocess, "run", lambda *a, **_: started.append(a))
    assert resolve(str(path)).folder == source.folder
    assert not started
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path.write_bytes(b"GGUF")
    with pytest.raises(LoadError, match=r"Tea-Q4_0\.gguf is cut off: it has 4 bytes"):
        resolve(str(path))
    assert [each.name for each in (tmp_path / "cache/sgc/gguf").iterdir()] == [source.folder.name]


def test_a_child_that_exceeds_its_limits_is_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sgc.runtime.engine.model.checkpoints.gguf import folder

    def killed(*_: Any, **__: Any) -> Mapping[str, Any]:
        return subprocess.CompletedProcess([], -9, b"")  # type: ignore[return-value]

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(folder.subprocess, "run", killed)
    path = tmp_path / "model.gguf"
    path.write_bytes(b"")
    with pytest.raises(LoadError, match="exceeded the limit on time or memory"):
        resolve(str(path))
