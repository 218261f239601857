"""What peft writes is read as it means it; everything that is not computed is refused by name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from engine.core.model.test_fused import make_model
from lora_folders import save_adapter
from safetensors.torch import load_file, save_file

from sgc.errors import LoadError, UsageError
from sgc.runtime.engine.config import ServerConfig, check
from sgc.runtime.engine.model.adapters.files import (
    MAX_ADAPTERS,
    check_vocabulary,
    parse_adapters,
    read_adapter,
)
from sgc.runtime.engine.model.adapters.name_patterns import matches

Q0, Q1 = (f"model.layers.{n}.self_attn.q_proj" for n in (0, 1))
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


@pytest.fixture(scope="module")
def model() -> Any:
    return make_model("Llama", {})


@pytest.fixture
def folder(model: Any, tmp_path: Path) -> Path:
    save_adapter(model, tmp_path / "a", adapts=lambda name: "q_proj" in name)
    return tmp_path / "a"


def change(folder: Path, **settings: Any) -> None:
    path = folder / CONFIG
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


def retensor(folder: Path, new: Callable[[dict[str, torch.Tensor]], dict]) -> None:
    save_file(new(load_file(folder / WEIGHTS)), folder / WEIGHTS)


class TestScales:
    """alpha / rank, with the patterns of both."""

    @pytest.mark.parametrize(
        ("settings", "first", "second"),
        [
            ({"lora_alpha": 8}, 2.0, 2.0),
            ({"lora_alpha": 8, "use_rslora": True}, 4.0, 4.0),
            ({"alpha_pattern": {"layers.1.self_attn.q_proj": 2}}, 2.0, 0.5),
            ({"alpha_pattern": {r"model\.layers\.0\..*q_proj": 1, "q_proj": 4}}, 0.25, 1.0),
            ({"alpha_pattern": {"proj": 2}}, 2.0, 2.0),  # no whole part of a name
            ({"alpha_pattern": {r"layers.[1-9].*": 16}}, 2.0, 4.0),
        ],
    )
    def test_as_peft_has_them(
        self, folder: Path, settings: dict, first: float, second: float
    ) -> None:
        change(folder, **settings)
        modules = read_adapter("a", folder).modules
        assert (modules[Q0].scale, modules[Q1].scale) == (first, second)

    def test_ranks_of_their_own(self, model: Any, tmp_path: Path) -> None:
        files = save_adapter(
            model, tmp_path / "b", adapts=lambda name: "q_proj" in name, ranks={Q1: 9},
            rank_pattern={"layers.1.self_attn.q_proj": 9}, use_rslora=True, lora_alpha=6,
        )  # fmt: skip
        assert [(m.rank, m.scale) for m in files.modules.values()] == [(4, 3.0), (9, 2.0)]
        assert files.rank == 9
        change(files.folder, rank_pattern={})
        with pytest.raises(LoadError, match=r"it says that .*layers.1.* has rank 4, and the weig"):
            read_adapter("b", files.folder)

    def test_patterns_that_could_take_long_are_not_run(self, folder: Path) -> None:
        for pattern in ("(a+)+$", "(a|a)*b", r"(.)\1", "(?=a)b", ".*.*.*x", "(", "a" * 300):
            change(folder, alpha_pattern={pattern: 1})
            with pytest.raises(LoadError, match=re.escape(str(folder))):
                read_adapter("a", folder)
        assert matches("a.*b.*c", "a" * 256) is False
        assert matches(r"(.*\.)?[qv]_proj", Q0)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"use_dora": True}, "use_dora True: DoRA"),
    ({"bias": "all"}, "bias 'all': biases that were trained"),
    ({"bias": "lora_only"}, "biases that were trained"),
    ({"lora_bias": True}, "biases of its own"),
    ({"modules_to_save": ["lm_head"]}, "whole modules that replace"),
    ({"trainable_token_indices": [3]}, "tokens that were trained"),
    ({"target_parameters": ["experts.gate_up_proj"]}, "such as those of experts"),
    ({"layer_replication": [[0, 2]]}, "stand several times"),
    ({"alora_invocation_tokens": [7]}, "aLoRA"),
    ({"init_lora_weights": "pissa"}, "changes the model's own weights"),
    ({"peft_type": "IA3"}, "another kind of adapter than LoRA"),
    ({"peft_type": None}, "another kind of adapter than LoRA"),
    ({"task_type": "SEQ_CLS"}, "a task other than generating text"),
    ({"use_something_new": {"x": 1}}, "a setting that this engine does not know"),
    ({"r": "eight"}, "r and lora_alpha must be numbers"),
    ({"lora_alpha": math.inf}, "must be numbers|not valid JSON|finite"),
    ({"rank_pattern": ["q_proj"]}, "rank_pattern must give patterns of names their numbers"),
    ({"alpha_pattern": {"q_proj": None}}, "alpha_pattern must give"),
]


@pytest.mark.parametrize(("settings", "why"), REFUSED)
def test_settings_that_are_not_applied(folder: Path, settings: dict, why: str) -> None:
    change(folder, **settings)
    with pytest.raises(LoadError, match=why):
        read_adapter("a", folder)


@pytest.mark.parametrize(
    "settings",
    [
        {"init_lora_weights": "gaussian", "target_modules": "all-linear", "lora_dropout": 0.1},
        {"target_modules": r".*\.(q|v)_proj", "modules_to_save": [], "use_dora": False},
        {"target_modules": ["q_proj"], "layers_to_transform": [0, 1], "layers_pattern": "layers",
         "task_type": None, "loftq_config": {}, "base_model_name_or_path": "/elsewhere",
         "auto_mapping": {"base_model_class": "LlamaForCausalLM"}, "revision": "main"},
    ],
)  # fmt: skip
def test_settings_that_change_nothing_here(folder: Path, settings: dict) -> None:
    """The file shows which modules were adapted."""
    change(folder, **settings)
    assert set(read_adapter("a", folder).modules) == {Q0, Q1}


class TestFiles:
    def refused(self, folder: Path, why: str) -> None:
        with pytest.raises(LoadError, match=why):
            read_adapter("a", folder)

    def test_no_folder_and_no_adapter(self, tmp_path: Path) -> None:
        self.refused(tmp_path / "none", "no folder at .*none")
        self.refused(tmp_path, f"holds no adapter: .*{CONFIG} is missing")

    def test_pickles(self, folder: Path) -> None:
        (folder / WEIGHTS).rename(folder / "adapter_model.bin")
        self.refused(folder, "only pickled weights")
        (folder / "adapter_model.bin").unlink()
        self.refused(folder, f"{WEIGHTS} is missing")

    def test_cut_off(self, folder: Path) -> None:
        whole = (folder / WEIGHTS).read_bytes()
        for n in (0, 7, 100, len(whole) - 1):
            (folder / WEIGHTS).write_bytes(whole[:n])
            self.refused(folder, "cut off|damaged")

    def test_half_a_pair(self, folder: Path) -> None:
        lost = f"base_model.model.{Q1}.lora_B.weight"
        retensor(folder, lambda found: {k: v for k, v in found.items() if k != lost})
        self.refused(folder, f"lacks the tensor '{lost}'")

    def test_other_tensors(self, folder: Path) -> None:
        for key, what in (
            (f"base_model.model.{Q0}.lora_magnitude_vector", "DoRA"),
            ("base_model.model.model.embed_tokens.lora_embedding_A", "an adapted embedding"),
            ("base_model.model.lm_head.weight", "no part of a LoRA adapter"),
        ):
            retensor(folder, lambda found, key=key: {**found, key: torch.ones(2)})
            self.refused(folder, what)
            retensor(folder, lambda found, key=key: {k: v for k, v in found.items() if k != key})

    def test_ranks(self, model: Any, tmp_path: Path, folder: Path) -> None:
        with pytest.raises(LoadError, match="with rank 513; from 1 to 512"):
            save_adapter(model, tmp_path / "huge", rank=513)
        key = f"base_model.model.{Q0}.lora_B.weight"
        retensor(folder, lambda found: {**found, key: torch.ones(32, 5)})
        self.refused(folder, "have ranks 4 and 5")
        retensor(folder, lambda found: {**found, key: torch.ones(32, 4, dtype=torch.int8)})
        self.refused(folder, "not a matrix of floating point")
        retensor(folder, lambda found: {})
        self.refused(folder, "no tensors")

    def test_settings_that_are_no_json(self, folder: Path) -> None:
        (folder / CONFIG).write_text("{")
        self.refused(folder, "not valid JSON")

    def test_the_digest_is_of_the_content(self, folder: Path) -> None:
        before = read_adapter("a", folder).digest
        assert read_adapter("b", folder.rename(folder.parent / "b")).digest == before
        change(folder.parent / "b", lora_alpha=9)
        assert read_adapter("b", folder.parent / "b").digest != before


def tokenizer(folder: Path, vocab: Any, added: dict[str, int]) -> None:
    folder.mkdir(exist_ok=True)
    listed = [{"content": token, "id": id} for token, id in added.items()]
    values = {"model": {"vocab": vocab}, "added_tokens": listed}
    (folder / "tokenizer.json").write_text(json.dumps(values))


def test_tokens_that_the_model_has_not(folder: Path, tmp_path: Path) -> None:
    files, own = read_adapter("a", folder), tmp_path / "model"
    tokenizer(own, {"a": 0, "b": 1}, {"<end>": 2})
    check_vocabulary(files, own)  # it brings none
    tokenizer(folder, {"a": 0, "b": 1}, {"<end>": 2})
    check_vocabulary(files, own)
    tokenizer(folder, {"a": 0, "b": 1}, {"<end>": 2, "<tool>": 3})
    with pytest.raises(LoadError, match=r"another vocabulary: .* has 1 tokens .* '<tool>' .3."):
        check_vocabulary(files, own)
    tokenizer(folder, [["b", 0.1], ["a", 0.2]], {})
    with pytest.raises(LoadError, match="has 2 tokens"):
        check_vocabulary(files, own)


class TestOptions:
    def test_names_and_folders(self) -> None:
        found = parse_adapters(["sql=/a/b", "team/x:1=c=d"])
        assert found == [("sql", Path("/a/b")), ("team/x:1", Path("c=d"))]

    @pytest.mark.parametrize("option", ["", "sql", "=x", "sql=", "a b=x", "-x=y", "x" * 200 + "=y"])
    def test_what_is_none(self, option: str) -> None:
        with pytest.raises(UsageError, match="NAME=FOLDER"):
            parse_adapters([option])

    def test_too_many_and_twice(self) -> None:
        with pytest.raises(UsageError, match="'a' twice"):
            parse_adapters(["a=x", "a=y"])
        with pytest.raises(UsageError, match=f"of at most {MAX_ADAPTERS}"):
            parse_adapters([f"a{n}=x" for n in range(MAX_ADAPTERS + 1)])

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"model": "fake"}, "for real models"),
            ({"tensor_parallel": 2}, "tensor-parallel"),
            ({"adapter": ("sgc-tiny=x",)}, "the model's own name"),
        ],
    )
    def test_what_they_do_not_go_with(self, options: dict, why: str) -> None:
        given = {"listen": "127.0.0.1:0", "adapter": ("a=x",), **options}
        with pytest.raises(UsageError, match=why):
            check(ServerConfig(**given))
