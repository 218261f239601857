"""Adapters on disk: folders as peft saves them, with LoRA's settings and weights. They are read
strictly: a setting or tensor that would change replies, but is not applied here, is refused by
name.

This module reads no weights and imports no torch: the server calls it before anything is started.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sgc.errors import LoadError, UsageError
from sgc.runtime.engine.disk.keys import files_digest
from sgc.runtime.engine.model.adapters.name_patterns import matches
from sgc.runtime.engine.model.weight_files import TensorHeader, read_header
from sgc.runtime.engine.text.json_files import Json, read_json, refuse

CONFIG, WEIGHTS, PICKLED = "adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"
TOKENIZER = "tokenizer.json"
MAX_ADAPTERS = 32
MAX_RANK = 512
MAX_BYTES = 4 << 30
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
_PREFIX = "base_model.model."  # peft's, before a module's name
_DOWN, _UP = ".lora_A.weight", ".lora_B.weight"
_FLOATS = {"F16", "BF16", "F32", "F64"}

_READ = {"r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern", "target_modules"}
# Settings of training and of peft itself, and those that say which modules have weights, which the
# weights' file shows.
_UNUSED = {"auto_mapping", "base_model_name_or_path", "revision", "inference_mode", "peft_version",
           "lora_dropout", "layers_to_transform", "layers_pattern", "exclude_modules",
           "fan_in_fan_out", "megatron_core", "loftq_config", "eva_config", "corda_config",
           "qalora_group_size", "ensure_weight_tying", "runtime_config"}  # fmt: skip
# Values with which a setting has no effect; for all other settings: null, false, 0, "", [] and {}.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "task_type": ("CAUSAL_LM", None),
    "bias": ("none", None),
    # Other values change the model's own weights when the adapter is made.
    "init_lora_weights": (True, False, None, "gaussian", "eva", "orthogonal"),
}
_WHAT = {
    "use_dora": "DoRA",
    "use_qalora": "QALoRA",
    "modules_to_save": "whole modules that replace the model's",
    "trainable_token_indices": "tokens that were trained",
    "target_parameters": "adapted parameters, such as those of experts",
    "bias": "biases that were trained",
    "lora_bias": "biases of its own",
    "layer_replication": "layers that stand several times",
    "alora_invocation_tokens": "an adapter that begins at certain tokens (aLoRA)",
    "init_lora_weights": "a beginning that changes the model's own weights",
    "peft_type": "another kind of adapter than LoRA",
    "task_type": "a task other than generating text",
}
_MERGE = "merge it into its model with peft's merge_and_unload, and serve that"


@dataclass(frozen=True, slots=True)
class Targets:
    """Which of the model's modules an adapter changes, by the names of their tensors."""

    down: str
    up: str
    rank: int
    scale: float


@dataclass(frozen=True, slots=True)
class AdapterFiles:
    """A checked folder. modules: by the model's names. digest: of all that decides the replies."""

    name: str
    folder: Path
    modules: Mapping[str, Targets]
    digest: bytes

    @property
    def weights(self) -> Path:
        return self.folder / WEIGHTS

    @property
    def rank(self) -> int:
        """The largest rank of its modules."""
        return max(module.rank for module in self.modules.values())


def parse_adapters(options: Sequence[str]) -> list[tuple[str, Path]]:
    """Names and folders of `NAME=FOLDER`s; raises `UsageError`."""
    found: dict[str, Path] = {}
    for option in options:
        name, equals, folder = option.partition("=")
        if not equals or not folder or not _NAME.fullmatch(name):
            raise UsageError(
                f"--adapter takes NAME=FOLDER, not {option[:200]!r}",
                hint="a name has letters, digits and . _ : / -, such as sql or team/sql",
            )
        if name in found:
            raise UsageError(f"--adapter names {name!r} twice", hint="give each a name of its own")
        found[name] = Path(folder).expanduser()
    if len(found) > MAX_ADAPTERS:
        raise UsageError(f"--adapter: {len(found)} are given, of at most {MAX_ADAPTERS}")
    return list(found.items())


def read_adapter(name: str, folder: Path) -> AdapterFiles:
    """Checks an adapter's folder; raises `LoadError` that names the file."""
    if not folder.is_dir():
        raise LoadError(
            f"no folder at {folder}, where the adapter {name!r} should be",
            hint=f"give a folder with {CONFIG} and {WEIGHTS}",
        )
    settings = read_json(folder / CONFIG)
    if not settings:
        raise LoadError(
            f"{folder} holds no adapter: {folder / CONFIG} is missing or empty",
            hint="give the folder that peft's save_pretrained wrote",
        )
    _check_settings(folder / CONFIG, settings)
    headers = _headers(folder)
    modules = dict(_modules(folder, settings, headers))
    return AdapterFiles(name, folder, modules, files_digest([folder / CONFIG, folder / WEIGHTS]))


def check_vocabulary(adapter: AdapterFiles, tokenizer_folder: Path) -> None:
    """Raises `LoadError` if the adapter was made with tokens that the model's tokenizer does not
    have. peft saves the tokenizer beside the adapter."""
    path = adapter.folder / TOKENIZER
    new = sorted(_tokens(path).items() - _tokens(tokenizer_folder / TOKENIZER).items())
    if new and (tokenizer_folder / TOKENIZER).exists():
        raise LoadError(
            f"the adapter {adapter.name!r} is for another vocabulary: {path} has {len(new)} tokens "
            f"that the model's tokenizer has not, such as {new[0][0]!r:.100} ({new[0][1]})",
            hint="give the adapter of this model, or the model of this adapter",
        )


def _tokens(path: Path) -> dict[str, int]:
    """The tokens of a tokenizer.json with their ids; none if there is no such file."""
    values = read_json(path)
    vocab: Any = (values.get("model") or {}).get("vocab") or {}
    found: dict[str, int] = {}
    if isinstance(vocab, dict):
        found |= {token: id for token, id in vocab.items() if type(id) is int}
    elif isinstance(vocab, list):  # Unigram: tokens with their scores
        found |= {
            str(each[0]): id for id, each in enumerate(vocab) if isinstance(each, list) and each
        }
    for each in values.get("added_tokens") or ():
        if isinstance(each, dict) and type(each.get("id")) is int:
            found[str(each.get("content"))] = each["id"]
    return found


def _check_settings(path: Path, settings: Json) -> None:
    for key, value in {"peft_type": None, **settings}.items():
        does_nothing = value in _NEUTRAL[key] if key in _NEUTRAL else not value
        if does_nothing or key in _READ or key in _UNUSED:
            continue
        what = _WHAT.get(key, "a setting that this engine does not know")
        raise LoadError(f"{path} has {key} {value!r:.100}: {what}, which is not applied here",
                        hint=_MERGE)  # fmt: skip


def _headers(folder: Path) -> dict[str, TensorHeader]:
    path = folder / WEIGHTS
    if not path.exists():
        if (folder / PICKLED).exists():
            raise LoadError(
                f"{folder} holds only pickled weights ({PICKLED}); only {WEIGHTS} is loaded",
                hint="pickled weights can run code when loaded; save the adapter again with a peft "
                "of today",
            )
        raise LoadError(f"{path} is missing", hint="give the folder that peft wrote")
    headers = read_header(path)
    if (n_bytes := max(header.end for header in headers.values()) if headers else 0) > MAX_BYTES:
        raise LoadError(f"{path} has {n_bytes} bytes of weights, of at most {MAX_BYTES}")
    return headers


def _modules(
    folder: Path, settings: Json, headers: Mapping[str, TensorHeader]
) -> Iterator[tuple[str, Targets]]:
    path = folder / WEIGHTS
    if not headers:
        refuse(path, "it has no tensors")
    scales = _Scales.of(folder / CONFIG, settings)
    for key in sorted(headers):
        if not key.endswith((_DOWN, _UP)):
            _refuse_tensor(path, key)
        module = key.removesuffix(_DOWN).removesuffix(_UP)
        down, up = (headers.get(module + end) for end in (_DOWN, _UP))
        if down is None or up is None:
            missing = module + (_DOWN if down is None else _UP)
            raise LoadError(f"{path} lacks the tensor {missing!r:.200}", hint="save it again")
        if key.endswith(_UP):
            continue
        name = module.removeprefix(_PREFIX)
        rank = _rank(path, name, down, up)
        yield name, Targets(module + _DOWN, module + _UP, rank, scales.scale(name, rank))


def _rank(path: Path, name: str, down: TensorHeader, up: TensorHeader) -> int:
    for header in (down, up):
        if header.type not in _FLOATS or len(header.shape) != 2:
            refuse(path, f"the weights of {name!r:.200} are {header.type} {list(header.shape)}, "
                         "and not a matrix of floating point numbers")  # fmt: skip
    rank = down.shape[0]
    if up.shape[1] != rank:
        refuse(path, f"the two matrices of {name!r:.200} have ranks {rank} and {up.shape[1]}")
    if not 1 <= rank <= MAX_RANK:
        raise LoadError(
            f"{path} adapts {name!r:.200} with rank {rank}; from 1 to {MAX_RANK} are supported",
            hint=_MERGE,
        )
    return rank


@dataclass(frozen=True, slots=True)
class _Scales:
    """The factors by which an adapter's products are multiplied."""

    path: Path
    rank: int
    alpha: float
    ranks: Mapping[str, Any]
    alphas: Mapping[str, Any]
    is_rooted: bool

    @classmethod
    def of(cls, path: Path, settings: Json) -> _Scales:
        rank, alpha = settings.get("r", 8), settings.get("lora_alpha", 8)
        ranks, alphas = settings.get("rank_pattern") or {}, settings.get("alpha_pattern") or {}
        for key, patterns in (("rank_pattern", ranks), ("alpha_pattern", alphas)):
            if not isinstance(patterns, dict) or not all(map(_is_number, patterns.values())):
                refuse(path, f"{key} must give patterns of names their numbers")
        if not _is_number(rank) or not _is_number(alpha):
            refuse(path, f"r and lora_alpha must be numbers, not {rank!r:.50} and {alpha!r:.50}")
        return cls(path, rank, alpha, ranks, alphas, bool(settings.get("use_rslora")))

    def scale(self, name: str, rank: int) -> float:
        told = self._of(self.ranks, name, self.rank)
        if told != rank:
            refuse(self.path, f"it says that {name!r:.200} has rank {told}, and the weights {rank}")
        alpha = self._of(self.alphas, name, self.alpha)
        return float(alpha) / (math.sqrt(rank) if self.is_rooted else rank)

    def _of(self, patterns: Mapping[str, Any], name: str, default: Any) -> Any:
        """As in peft: the value of the first pattern that matches the name or its end."""
        try:
            found = (value for pattern, value in patterns.items() if matches(pattern, name))
            return next(found, default)
        except ValueError as error:
            refuse(self.path, str(error))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _refuse_tensor(path: Path, key: str) -> NoReturn:
    kinds = {"lora_magnitude_vector": "DoRA", "lora_embedding_": "an adapted embedding"}
    what = next((kinds[part] for part in kinds if part in key), "no part of a LoRA adapter")
    raise LoadError(
        f"{path} has the tensor {key!r:.200}: {what}, which is not applied here", hint=_MERGE
    )
