"""Adapters in each way to compute a model: rows of several beside rows of none, against models into
which one adapter each is merged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engine.core.model.test_fused import EXPERTS, GPT2_SIZES, make_model
from lora_folders import merged, save_adapter
from torch import Tensor, nn

from sgc.errors import LoadError
from sgc.kernels.cpu import library
from sgc.runtime.engine.model.adapters.files import AdapterFiles
from sgc.runtime.engine.model.adapters.weights import Adapters
from sgc.runtime.engine.model.forward import Row, flatten
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.runner import ModelRunner, Needs
from sgc.runtime.engine.model.self_check import own_logits
from sgc.runtime.engine.model.ways import adapted_runner, native_runner_with

N = 24
WANTED = np.array([3, 10, 11, N - 1])
FAMILIES: list[tuple[str, dict[str, Any]]] = [
    ("Llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    ("Qwen2", {}),
    ("Phi3", {"pad_token_id": 0}),  # Q, K and V in one module, gate and up in another
    ("GPTNeoX", {}),  # Q, K and V of each head in turn
    ("GPT2", GPT2_SIZES),  # weights the other way round
    ("Gemma2", {}),
    ("Cohere", {"logit_scale": 0.5}),
]
needs_library = pytest.mark.skipif(library.find() is None, reason=library.reason())


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def some(name: str) -> bool:
    """Of these each decoder has some, and not all of a product's."""
    return name.endswith(("q_proj", "up_proj", "o_proj", "qkv_proj", "query_key_value", "c_fc"))


def two_adapters(model: Any, path: Path) -> list[AdapterFiles]:
    return [
        save_adapter(model, path / "all", seed=1),
        save_adapter(model, path / "some", seed=2, rank=3, adapts=some, lora_alpha=12),
    ]


def rows_of(ids: np.ndarray, adapters: list[int]) -> list[Row]:
    """The same tokens on each of these adapters, on pages of their own."""
    pages = np.random.default_rng(2).permutation(N * len(adapters)).reshape(-1, N)
    return [
        Row(ids, 0, own, WANTED, adapter=adapter)
        for own, adapter in zip(pages, adapters, strict=True)
    ]


def run(runner: ModelRunner, rows: list[Row]) -> Tensor:
    return torch.from_numpy(runner.logits(flatten(rows))).view(len(rows), len(WANTED), -1)


def check(make: Any, model: Any, files: list[AdapterFiles], tolerance: float) -> None:
    """Each row of a batch as the model with its adapter gives it, and as it is alone."""
    ids = np.random.default_rng(1).integers(0, 190, N)
    batch = torch.from_numpy(ids)[None]
    with_each = [model, *(merged(model, each) for each in files)]
    own = [own_logits(each, batch)[0][WANTED].float() for each in with_each]
    runner = make(model, 5 * N)
    rows = rows_of(ids, [0, 0, 1, len(files), len(files)])
    found = run(runner, rows)
    for row, logits in zip(rows, found, strict=True):
        right = own[row.adapter]
        assert float((logits - right).norm() / right.norm()) < tolerance
        assert torch.equal(run(runner, [row])[0], logits) or tolerance > 1e-5
    assert float((own[1] - own[0]).norm() / own[0].norm()) > 0.2  # they do something
    mixed = [rows[i] for i in (3, 0, 2, 4, 1)]  # the step puts rows of one side by side
    assert torch.allclose(run(runner, mixed), found[[3, 0, 2, 4, 1]], rtol=1e-4, atol=1e-4)


@needs_library
@pytest.mark.parametrize(("name", "changes"), FAMILIES, ids=[name for name, _ in FAMILIES])
def test_our_own_kernels(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    model = make_model(name, changes)
    files = two_adapters(model, tmp_path)
    check(native_runner_with(Needs(), Adapters(files)), model, files, 1e-5)


@pytest.mark.parametrize(("name", "changes"), [FAMILIES[0], FAMILIES[4], ("Glm", {})])
def test_a_models_own_modules(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    """For families that our own kernels do not know, and where there are none."""
    if name == "Glm":
        changes = {"pad_token_id": 0}
    model = make_model(name, changes)
    files = two_adapters(model, tmp_path)
    check(adapted_runner(Adapters(files)), model, files, 1e-5)


@needs_library
@pytest.mark.parametrize("needs", [Needs(), Needs(deterministic=True)])
def test_bfloat16(needs: Needs, tmp_path: Path) -> None:
    model = make_model("Llama", {}, torch.bfloat16)
    files = [save_adapter(model, tmp_path / "a", seed=1, strength=0.15, dtype=torch.bfloat16)]
    check(native_runner_with(needs, Adapters(files)), model, files, 0.1)


@needs_library
def test_a_rows_logits_do_not_depend_on_other_adapters(tmp_path: Path) -> None:
    """With --deterministic, to the bit, in bfloat16 too."""
    model = make_model("Qwen2", {}, torch.bfloat16)
    files = two_adapters(model, tmp_path)
    runner = native_runner_with(Needs(deterministic=True), Adapters(files))(model, 5 * N)
    rows = rows_of(np.arange(N), [0, 1, 1, 2])
    found = run(runner, rows)
    for row, logits in zip(rows, found, strict=True):
        assert torch.equal(run(runner, [row])[0], logits)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_hidden_states_are_the_adapters_too(dtype: torch.dtype, tmp_path: Path) -> None:
    """Embeddings. float16 is for the model's own modules."""
    model = make_model("Llama", {}, dtype)
    files = [save_adapter(model, tmp_path / "a", strength=0.15)]
    other = merged(model, files[0])
    model.save_pretrained(tmp_path / "model")
    runner = load_model(str(tmp_path / "model"), pool_tokens=2 * N, adapters=files)
    rows = rows_of(np.arange(N), [1, 0])
    found = torch.from_numpy(runner.hidden(flatten(rows))).view(2, len(WANTED), -1)
    ids = torch.arange(N)[None]
    for hidden, each in zip(found, [other, model], strict=True):
        each.set_attn_implementation("eager")
        right = each.model(ids).last_hidden_state[0][WANTED].float().detach()
        assert float((hidden - right).norm() / right.norm()) < (
            1e-5 if dtype.itemsize > 2 else 0.02
        )


def test_a_folder_is_loaded_with_its_adapters(tmp_path: Path) -> None:
    """A Llama comes without transformers, other families and dtypes with it."""
    for name in ("Llama", "Gemma"):
        model = make_model(name, {"tie_word_embeddings": False})
        model.save_pretrained(tmp_path / name)
        files = two_adapters(model, tmp_path / f"of {name}")
        check(
            lambda _, n, name=name, files=files: load_model(
                str(tmp_path / name), pool_tokens=n, adapters=files
            ),
            model, files, 1e-5,
        )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    make_model("Llama", {}).save_pretrained(path)
    return path


class TestOfAnotherModel:
    def refused(self, folder: Path, files: AdapterFiles, why: str) -> None:
        with pytest.raises(LoadError, match=why):
            load_model(str(folder), pool_tokens=9, adapters=[files])

    def test_shapes(self, folder: Path, tmp_path: Path) -> None:
        wider = make_model("Llama", {"hidden_size": 64})
        files = save_adapter(wider, tmp_path / "wide", adapts=lambda name: "k_proj" in name)
        self.refused(folder, files, r"not for this model: .*k_proj.* 32 inputs and 32 outputs in "
                     "LlamaForCausalLM, and 64 and 32")  # fmt: skip

    def test_vocabulary(self, folder: Path, tmp_path: Path) -> None:
        larger = make_model("Llama", {"vocab_size": 300})
        files = save_adapter(larger, tmp_path / "head", adapts=lambda name: name == "lm_head")
        self.refused(folder, files, "'lm_head' has 32 inputs and 199 outputs .* and 32 and 300")

    def test_architecture(self, folder: Path, tmp_path: Path) -> None:
        files = save_adapter(make_model("GPT2", GPT2_SIZES), tmp_path / "gpt2")
        self.refused(folder, files, "it changes 'lm_head'|it changes 'transformer.h.0.attn.c_attn'")

    def test_experts(self, tmp_path: Path) -> None:
        model = make_model("Qwen3Moe", EXPERTS)
        model.save_pretrained(tmp_path / "model")
        files = save_adapter(model, tmp_path / "a", adapts=lambda name: "q_proj" in name)
        assert load_model(str(tmp_path / "model"), pool_tokens=9, adapters=[files])
        dense = make_model("Llama", {})  # as older transformers named a model's experts
        dense.model.layers[0].mlp.experts = nn.ModuleList([nn.Linear(32, 16)])
        of_experts = save_adapter(dense, tmp_path / "b", adapts=lambda name: "experts" in name)
        self.refused(tmp_path / "model", of_experts, "experts.0', which is no linear module")

    def test_numbers_that_are_none(self, folder: Path, tmp_path: Path) -> None:
        files = save_adapter(
            make_model("Llama", {}), tmp_path / "nan", strength=float("nan"),
            adapts=lambda name: "q_proj" in name,
        )  # fmt: skip
        self.refused(folder, files, "not finite")

    def test_eight_bits(self, folder: Path, tmp_path: Path) -> None:
        files = save_adapter(make_model("Llama", {}), tmp_path / "a")
        with pytest.raises(LoadError, match="--weights int8"):
            load_model(
                str(folder), pool_tokens=9, adapters=[files], needs=Needs(weights="int8"),
                text=np.arange(20),
            )  # fmt: skip
