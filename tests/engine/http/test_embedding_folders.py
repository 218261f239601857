"""A folder of sentence-transformers is served as that package would compute it, without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engine.core.model.test_fused import make_model
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from sgc.errors import LoadError
from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.http.errors import HttpError
from sgc.runtime.engine.http.openai.embeddings import embeddings, pairs, ranking
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.model.forward import Row, flatten
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.models import DEFAULT_FOLDER, resolve
from sgc.runtime.engine.model.pooling_files import pooling_of
from sgc.runtime.engine.names import Pooling
from sgc.runtime.engine.preparing.bounds import RequestError, ServerLimits
from sgc.runtime.engine.preparing.prepare import prepare_all
from sgc.runtime.engine.server.server import EngineFacts
from sgc.runtime.engine.text.template import PLAIN
from sgc.runtime.engine.text.tokenizer import Tokenizer

TEXTS = ["What do you call a young cat?", "kitten", "", "The capital of France is Paris. " * 9]
MODULES = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]


def write_layout(folder: Path, modes: dict[str, Any], modules: Any = MODULES) -> None:
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Qwen2, whose tokenizer ends each text with a token."""
    folder = tmp_path_factory.mktemp("embedder")
    spec = json.loads((DEFAULT_FOLDER / "tokenizer.json").read_text())
    end = max(token["id"] for token in spec["added_tokens"])
    content = next(token["content"] for token in spec["added_tokens"] if token["id"] == end)
    spec["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": content,
                   "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {content: {"id": content, "ids": [end], "tokens": [content]}},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(spec))
    (folder / "tokenizer_config.json").write_text("{}")
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=4096, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
        max_position_embeddings=256, initializer_range=0.3, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    Qwen2ForCausalLM(config).save_pretrained(folder)
    write_layout(folder, {"pooling_mode_mean_tokens": True, "pooling_mode_lasttoken": False})
    return folder


def by_transformers(folder: Path) -> np.ndarray:
    model = Qwen2ForCausalLM.from_pretrained(folder).eval()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    rows = []
    for text in TEXTS:
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        with torch.inference_mode():
            rows.append(model.model(input_ids=ids).last_hidden_state[0].mean(0).double().numpy())
    return np.array([row / np.linalg.norm(row) for row in rows])


@pytest.mark.slow
def test_vectors_are_those_of_the_folder(folder: Path, http_engine: Any) -> None:
    right = by_transformers(folder)
    with EmbeddedEngine(str(folder), ["--http", "0", "--pool-tokens", "2000"]) as engine:
        assert "embeddings: the mean of all tokens (1_Pooling/config.json)" in engine.stderr_tail
        served = type(http_engine)(engine)
        with served.client() as client:
            model = client.models.list().data[0]
            assert model.model_dump()["pooling"] == "mean"
            found = client.embeddings.create(model=model.id, input=TEXTS)
            again = client.embeddings.create(model=model.id, input=TEXTS[::-1])
    vectors = np.array([each.embedding for each in found.data])
    np.testing.assert_allclose(vectors, right, atol=1e-5)
    np.testing.assert_allclose(vectors, [each.embedding for each in again.data][::-1], atol=1e-5)


@pytest.mark.parametrize(
    ("modes", "name"),
    [
        ({"pooling_mode_lasttoken": True}, "last"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_cls_token": True, "word_embedding_dimension": 8}, "first"),
        ({"pooling_mode": "lasttoken"}, "last"),
    ],
)
def test_the_folder_says_how(tmp_path: Path, modes: dict[str, Any], name: str) -> None:
    write_layout(tmp_path, modes)
    assert pooling_of(tmp_path, "auto") == Pooling(name, "1_Pooling/config.json")
    assert pooling_of(tmp_path, "mean") == Pooling("mean", "--pooling")


def test_without_a_word_of_the_folder_it_is_the_last_token(tmp_path: Path) -> None:
    assert pooling_of(tmp_path, "auto") == pooling_of(None, "auto") == Pooling("last")


def test_a_default_prompt_is_warned_of(tmp_path: Path) -> None:
    write_layout(tmp_path, {"pooling_mode_lasttoken": True})
    path = tmp_path / "config_sentence_transformers.json"
    path.write_text('{"prompts": {"query": "q: "}, "default_prompt_name": null}')
    assert not pooling_of(tmp_path, "auto").warning
    path.write_text('{"prompts": {"query": "q: "}, "default_prompt_name": "query"}')
    assert "default prompt ('query')" in pooling_of(tmp_path, "auto").warning


@pytest.mark.parametrize(
    ("modes", "modules", "said"),
    [
        ({"pooling_mode_max_tokens": True}, MODULES, "asks for pooling_mode_max_tokens"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_lasttoken": True}, MODULES,
         "pooling_mode_mean_tokens and pooling_mode_lasttoken"),
        ({}, MODULES, "asks for no pooling"),
        ({"pooling_mode": "weightedmean"}, MODULES, "asks for weightedmean"),
        ({}, [*MODULES[:2], ("2_Dense", "Dense")], "says Transformer, Pooling, Dense"),
        ({}, MODULES[:1], "says Transformer,"),
        ({}, [], "says nothing"),
    ],
)  # fmt: skip
def test_what_this_engine_does_not_do_is_refused_by_name(
    tmp_path: Path, modes: dict[str, Any], modules: Any, said: str
) -> None:
    write_layout(tmp_path, modes, modules)
    found = pooling_of(tmp_path, "auto")
    assert not found.name
    assert said in found.refusal
    assert found.line.startswith("embeddings: none: ")


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '[{"a": ' * 70 + "1" + "}]" * 70])
def test_malformed_files_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "modules.json").write_text(text)
    with pytest.raises(LoadError, match=r"modules\.json"):
        pooling_of(tmp_path, "auto")


@pytest.mark.parametrize("path", ["../1_Pooling", "/etc", "..", "", 3, None])
def test_no_file_outside_of_the_folder_is_read(tmp_path: Path, path: Any) -> None:
    write_layout(tmp_path, {"pooling_mode_lasttoken": True}, [MODULES[0], (path, "Pooling")])
    with pytest.raises(LoadError, match="must be the name of a folder"):
        pooling_of(tmp_path, "auto")


def test_refusals_reach_clients(tokenizer: Tokenizer) -> None:
    refused = Pooling("", refusal="none, for a reason")
    limits = ServerLimits(4096, 4096, tokenizer.vocab_size, pooling=refused)
    facts = EngineFacts("m", wpb.Ready(hidden_size=8), PLAIN, tokenizer, limits)
    for read, body in (
        (embeddings, {"input": "A"}),
        (pairs, {"text_1": "A", "text_2": "A"}),
        (ranking, {"query": "A", "documents": ["A"]}),
    ):
        with pytest.raises(HttpError, match="for a reason") as caught:
            read({"model": "m", **body}, facts)
        assert (caught.value.status, caught.value.param) == (400, "model")
    (found,) = prepare_all([pb.Request(embed=pb.Embed())], tokenizer, limits)
    assert isinstance(found, RequestError)
    assert "for a reason" in found.message


def test_a_head_for_classification_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    for path in folder.glob("*.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    saved = json.loads((tmp_path / "config.json").read_text())
    saved["architectures"] = ["Qwen2ForSequenceClassification"]
    (tmp_path / "config.json").write_text(json.dumps(saved))
    with pytest.raises(LoadError, match="Qwen2ForSequenceClassification"):
        resolve(str(tmp_path))


def save_body(folder: Path, name: str, is_tied: bool, architecture: str) -> Any:
    """As embedders are saved; the tensors lack the prefix of the model's body."""
    model = make_model(name, {"tie_word_embeddings": is_tied})
    model.model.save_pretrained(folder)
    saved = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(saved | {"architectures": [architecture]}))
    return model


@pytest.mark.parametrize(
    ("name", "is_tied", "architecture", "has_modules"),
    [
        ("Llama", True, "LlamaForCausalLM", False),
        ("Mistral", False, "MistralModel", False),
        ("Qwen3", False, "Qwen3ForCausalLM", True),
    ],
)
def test_a_model_without_its_head_gives_hidden_states(
    tmp_path: Path, name: str, is_tied: bool, architecture: str, has_modules: bool
) -> None:
    model = save_body(tmp_path, name, is_tied, architecture)
    if has_modules:
        write_layout(tmp_path, {"pooling_mode_lasttoken": True})
    runner = load_model(str(tmp_path), pool_tokens=16)
    assert runner.has_head == is_tied
    tokens, pages = np.arange(5, 15), np.arange(10)
    with torch.inference_mode():
        right = model.model(input_ids=torch.from_numpy(tokens)[None]).last_hidden_state[0]
    found = runner.hidden(flatten([Row(tokens, 0, pages, pages)]))
    np.testing.assert_allclose(found, right.numpy(), rtol=1e-4, atol=1e-4)


def test_a_head_is_not_lost_unnoticed(tmp_path: Path) -> None:
    save_body(tmp_path, "Qwen3", False, "Qwen3ForCausalLM")
    with pytest.raises(LoadError, match=r"1 missing \(lm_head\.weight\)"):
        load_model(str(tmp_path), pool_tokens=16)
