"""GGUF files read here and by transformers (`gguf_file=`): equal logits, ids and greedy texts."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from engine.core.model.gguf_models.making import WIDE, save_gguf
from engine.core.model.gguf_models.test_gguf import folder_of, is_close, logits
from engine.core.model.test_fused import make_model
from transformers import AutoModelForCausalLM, AutoTokenizer

import sgc
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.model.transformers_files import load_transformers_model
from sgc.runtime.engine.text.tokenizer import load_tokenizer

pytest.importorskip("gguf", reason="needs sgc[gguf]")
pytest.importorskip("accelerate", reason="transformers reads GGUF with accelerate only")
pytestmark = pytest.mark.slow
KINDS = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K",
         "Q5_K", "Q6_K"]  # fmt: skip
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {"tie_word_embeddings": True}),
    "qwen2": ("Qwen2", {}),
}
TEXTS = ["Once upon a time, there was a cat.", "", " two  spaces\n\nand lines", "1234 x=[{}]; déjà",
         "<|im_start|>user\nTea?<|im_end|>\n"]  # fmt: skip


def theirs(path: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    )


@pytest.mark.parametrize("name", ["llama", "qwen2"])
@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_transformers(kind: str, name: str, tmp_path: Path) -> None:
    kind_of_model, changes = MODELS[name]
    path = tmp_path / "model.gguf"
    save_gguf(path, make_model(kind_of_model, {**WIDE, **changes}), kind=kind)
    found = load_transformers_model(str(folder_of(path)), "float32")
    assert is_close(logits(found), logits(theirs(path)))


def tiny(path: Path, kind: str) -> None:
    """sgc-tiny with its own vocabulary, which is split as GPT-2's."""
    spec = json.loads((DEFAULT_FOLDER / "tokenizer.json").read_text())
    places = spec["model"]["vocab"]
    tokens = sorted(places, key=lambda token: places[token])
    template = json.loads((DEFAULT_FOLDER / "tokenizer_config.json").read_text())["chat_template"]
    vocabulary = {
        "ggml.model": "gpt2", "ggml.pre": "gpt-2", "ggml.tokens": tokens,
        "ggml.merges": [" ".join(merge) for merge in spec["model"]["merges"]],
        "ggml.token_type": [3 if i < 3 else 1 for i in range(len(tokens))],
        "ggml.eos_token_id": 0, "ggml.eot_token_id": 2, "chat_template": template,
    }  # fmt: skip
    save_gguf(path, load_transformers_model(str(DEFAULT_FOLDER), "float32"), kind=kind,
              vocabulary=vocabulary)  # fmt: skip


def test_ids_are_those_of_transformers(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    tiny(path, "Q8_0")
    ours = load_tokenizer(folder_of(path))
    right = AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)
    for text in TEXTS:
        assert [*ours.prefix_ids, *ours.encode_continuation(text)] == right(text)["input_ids"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without folders of GGUF files, that has the kernels: they would be compiled again."""
    ours = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sgc"
    found = tmp_path / "cache" / "sgc"
    found.mkdir(parents=True)
    for each in ours.glob("*"):
        if each.name != "gguf":
            shutil.copytree(each, found / each.name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(found.parent))
    return found


@pytest.mark.parametrize("kind", ["F16", "Q8_0", "Q4_K"])
def test_greedy_texts_are_those_of_transformers(kind: str, tmp_path: Path, cache: Path) -> None:
    """Of an engine that was given the file's path. A text has no special tokens: turns have."""
    path = tmp_path / "tiny.gguf"
    tiny(path, kind)
    model, tokenizer = theirs(path), AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)

    def right(ids: torch.Tensor) -> str:
        made = model.generate(ids, max_new_tokens=24, do_sample=False, eos_token_id=[0, 2])
        text: str = tokenizer.decode(made[0, ids.shape[1] :], skip_special_tokens=True)
        return text

    @sgc.function
    def reply(s: Any, text: str) -> None:
        s += text + sgc.gen("reply", max_tokens=24, temperature=0)

    @sgc.function
    def answer(s: Any, text: str) -> None:
        s += sgc.user(text)
        s += sgc.assistant(sgc.gen("reply", max_tokens=24, temperature=0))

    with sgc.Runtime(str(path), dtype="float32") as engine:
        for text in [TEXTS[0], *TEXTS[2:4]]:
            found = reply.run(text=text, backend=engine)["reply"]
            assert found == right(tokenizer(text, return_tensors="pt").input_ids)
        for text in ("Tea?", "Write a line about the sea."):
            turns = [{"role": "user", "content": text}]
            shown = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
            found = answer.run(text=text, backend=engine)["reply"]
            assert found == right(tokenizer(shown, return_tensors="pt").input_ids)
    assert list((cache / "gguf").iterdir())
