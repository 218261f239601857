"""Loads any causal LM of transformers; imported only for models unknown to `plain_files.py`.

transformers initialises weights that a folder lacks, ignores those that it does not know, and reads
the integers of a quantized model as weights. All three are refused here, with the tensors' names.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
)
from transformers.utils.logging import disable_progress_bar

from sgc.errors import LoadError
from sgc.runtime.engine.images.families import FAMILIES, REFUSED
from sgc.runtime.engine.model.checkpoints.gguf.files import Gguf
from sgc.runtime.engine.model.checkpoints.gguf.weights import gguf_of, told, weights
from sgc.runtime.engine.model.checkpoints.widening import quantization_of, widened
from sgc.runtime.engine.model.model_files import refuse_adapter
from sgc.runtime.engine.model.pooling_files import MODULES
from sgc.runtime.engine.model.runner import UnsupportedModel
from sgc.runtime.engine.model.transformers_model import ATTENTION
from sgc.runtime.engine.model.weight_files import TensorHeader, read_headers

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_WEIGHT_TYPES = {"F16", "BF16", "F32", "F64"}
_MAX_NAMED = 5
_log = logging.getLogger(__name__)
_LOADER = logging.getLogger("transformers.modeling_utils")
_COMMON = {"local_files_only": True, "trust_remote_code": False}


def load_transformers_model(folder: str, dtype: str) -> Any:
    """The model in transformers' own class. dtype: as for `runner.load_model`.

    Raises `UnsupportedModel`, and `LoadError` for weights that do not belong to the model.
    """
    disable_progress_bar()  # type: ignore[no-untyped-call]
    refuse_adapter(Path(folder))
    headers = read_headers(Path(folder))
    quantization = quantization_of(Path(folder))
    config = _config(folder)
    state = _state(folder, config, quantization, dtype)
    if state is not None:
        headers = {key: _header(tensor) for key, tensor in state.items()}
    report = _Report()
    try:
        with report:
            loaded = _loaded(folder, config, dtype, state)
    except MemoryError:
        raise
    except Exception as error:
        names = ", ".join(map(str, config.architectures or [config.model_type]))
        reason = str(error)
        if isinstance(error, KeyError) and ATTENTION in reason:
            reason = "it does not attend through transformers' attention interface"
        elif isinstance(error, KeyError) and (field := _field_of(config, error)):
            reason = f"its config.json says {field} {reason:.80}, which it does not know"
        elif config.model_type in REFUSED:
            reason = f"{REFUSED[config.model_type]} ({reason:.200})"
        elif unfit := report.unfit():
            reason = f"tensors that it puts together do not fit or are missing ({_named(unfit)})"
        raise UnsupportedModel(f"{names} is not supported: {reason} ({folder})") from error
    model, found = loaded
    if _lacks_only_its_head(Path(folder), model, found["missing_keys"]):
        model.get_output_embeddings().weight = model.get_input_embeddings().weight
        model.has_head = False
        found = {**found, "missing_keys": set()}
    _check_weights(folder, model, found, headers)
    return model


def _field_of(config: Any, error: KeyError) -> str:
    """The field of the configuration whose value was looked up and not found; "" if it is none."""
    values = config.get_text_config().to_dict()
    return next((name for name, value in values.items() if [value] == list(error.args)), "")


def _loaded(
    folder: str, config: Any, dtype: str, state: dict[str, torch.Tensor] | None
) -> tuple[Any, dict[str, Any]]:
    """The model, and transformers' report. state: its weights, in place of those in the folder."""
    sees = config.model_type in FAMILIES
    settings: dict[str, Any] = {
        "config": config,
        "dtype": _DTYPES.get(dtype, "auto"),
        "attn_implementation": {"text_config": ATTENTION} if sees else ATTENTION,
        # Without it the error would not name the tensors; they are refused below.
        "ignore_mismatched_sizes": True,
        "output_loading_info": True,
    }
    found: Any
    if state is None:
        auto: Any = AutoModelForImageTextToText if sees else AutoModelForCausalLM
        found = auto.from_pretrained(folder, use_safetensors=True, **settings, **_COMMON)
    else:
        settings["dtype"] = config.dtype
        kind: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
        found = kind.from_pretrained(None, state_dict=state, **settings)
    model, told = found
    return model, told


def _state(
    folder: str, config: Any, quantization: Mapping[str, Any] | None, dtype: str
) -> dict[str, torch.Tensor] | None:
    """The weights, where they are not what transformers reads from the folder."""
    gguf = gguf_of(Path(folder))
    if gguf is not None:
        return _of_gguf(gguf, config, dtype)
    return None if quantization is None else _widened(folder, config, quantization, dtype)


def _of_gguf(gguf: Gguf, config: Any, dtype: str) -> dict[str, torch.Tensor]:
    config.dtype = _DTYPES.get(dtype, config.dtype or torch.bfloat16)
    state = weights(gguf, config, config.dtype)
    if gguf.kinds:
        n_bytes = sum(tensor.nbytes for tensor in state.values())
        _log.warning("%s", told(gguf, n_bytes, str(config.dtype).removeprefix("torch.")))
    return state


def _widened(
    folder: str, config: Any, quantization: Mapping[str, Any], dtype: str
) -> dict[str, torch.Tensor]:
    """The weights of a quantized folder; its configuration becomes that of an ordinary model."""
    del config.quantization_config
    config.dtype = _DTYPES.get(dtype, config.dtype or torch.bfloat16)
    kind = quantization["quant_method"]
    name = str(config.dtype).removeprefix("torch.")
    _log.warning("%s is quantized (%s): its weights are widened to %s", folder, kind, name)
    return widened(Path(folder), quantization, config.dtype)


def _header(tensor: torch.Tensor) -> TensorHeader:
    return TensorHeader("F32" if tensor.is_floating_point() else "I64", tuple(tensor.shape), 0, 0)


def _lacks_only_its_head(folder: Path, model: Any, missing: Iterable[str]) -> bool:
    """Whether it was saved to make embeddings. Something must say so: a model that generates may
    not lose its head unnoticed."""
    is_body = all(str(name).endswith("Model") for name in model.config.architectures or [""])
    head = model.get_output_embeddings()
    names = {f"{name}.weight" for name, module in model.named_modules() if module is head}
    return set(missing) == names and (is_body or (folder / MODULES).is_file())


class _Report(logging.Filter):
    """Captures transformers' report on tensors while it loads; our errors replace it."""

    def __init__(self) -> None:
        super().__init__()
        self._text = ""

    def __enter__(self) -> _Report:
        _LOADER.addFilter(self)
        return self

    def __exit__(self, *_: object) -> None:
        _LOADER.removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        is_report = "LOAD REPORT" in text
        self._text += text if is_report else ""
        return not is_report

    def unfit(self) -> list[str]:
        """Tensors that could not be built from those in the files."""
        rows = (line.split("|") for line in self._text.splitlines())
        return [row[0].strip() for row in rows if len(row) > 1 and "CONVERSION" in row[1]]


def _config(folder: str) -> Any:
    try:
        return AutoConfig.from_pretrained(folder, **_COMMON)
    except Exception as error:  # each configuration class raises its own errors
        path = Path(folder) / "config.json"
        raise LoadError(
            f"{path} cannot be used: {type(error).__name__}: {error!s:.500}",
            hint="give a folder whose model transformers knows, or its files again",
        ) from error


def _check_weights(
    folder: str, model: Any, found: dict[str, Any], headers: dict[str, TensorHeader]
) -> None:
    """found: transformers' report, without what the model's class allows."""
    extra = {key for key in found["unexpected_keys"] if not _is_made(model, key, headers)}
    other = [f"{key}, which is {_shape(is_)} and not {_shape(must)}"
             for key, is_, must in found["mismatched_keys"]]  # fmt: skip
    problems = {
        "missing": found["missing_keys"],
        "of another shape": other,
        "not the model's": extra,
        "not of 16 bit floating point or wider": _not_floating(model, headers) - extra,
    }
    said = [f"{len(keys)} {what} ({_named(keys)})" for what, keys in problems.items() if keys]
    if said:
        raise LoadError(
            f"the weights in {folder} are not those of its config.json's "
            f"{type(model).__name__}: of the tensors, {'; '.join(said)}",
            hint="download the model again; a model that was changed must be saved whole",
        )


def _not_floating(model: Any, headers: dict[str, TensorHeader]) -> set[str]:
    """Tensors that are not floating point but would be used as weights."""
    if getattr(model.config, "quantization_config", None) is not None:
        return set()
    ignored = [*(model._keys_to_ignore_on_load_unexpected or ()), r"(^|\.)position_ids$"]
    return {
        key
        for key, tensor in headers.items()
        if tensor.type not in _WEIGHT_TYPES
        and not _is_made(model, key, headers)
        and not any(re.search(pattern, key) for pattern in ignored)
    }


def _is_made(model: Any, key: str, headers: Mapping[str, TensorHeader]) -> bool:
    """Whether the model creates the tensor itself: it is a buffer, whose name may lack the prefix
    of the model's body, or the causal mask of old checkpoints."""
    is_mask = key.endswith(".bias") and len(headers[key].shape) == 4 if key in headers else False
    is_buffer = any(name == key or name.endswith(f".{key}") for name, _ in model.named_buffers())
    return is_buffer or is_mask or key.endswith(".masked_bias")


def _named(keys: Iterable[str]) -> str:
    listed = sorted(keys)
    more = f", and {len(listed) - _MAX_NAMED} more" if len(listed) > _MAX_NAMED else ""
    return ", ".join(listed[:_MAX_NAMED]) + more


def _shape(shape: Iterable[int]) -> str:
    return "x".join(map(str, shape)) or "a number"
