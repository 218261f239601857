"""Adapters as peft saves them, made of random numbers, and models into which one is merged."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from sgc.runtime.engine.model.adapters.files import AdapterFiles, read_adapter
from sgc.runtime.engine.model.adapters.weights import Adapters

SETTINGS = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "bias": "none", "lora_alpha": 8}


def linears(model: Any) -> dict[str, tuple[int, int]]:
    """The linear modules of a model with (n_out, n_in), its head among them."""
    found = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            found[name] = tuple(module.weight.shape)
        elif type(module).__name__ == "Conv1D":
            found[name] = tuple(module.weight.shape[::-1])
    return found


def save_adapter(
    model: Any,
    folder: Path,
    *,
    seed: int = 0,
    rank: int = 4,
    adapts: Callable[[str], bool] = lambda name: True,
    ranks: Mapping[str, int] | None = None,
    strength: float = 0.3,
    dtype: torch.dtype = torch.float32,
    **settings: Any,
) -> AdapterFiles:
    """adapts: of a module's name. ranks: of some modules, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    random = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, (n_out, n_in) in linears(model).items():
        if not adapts(name):
            continue
        r = (ranks or {}).get(name, rank)
        down = torch.randn(r, n_in, generator=random) * strength
        up = torch.randn(n_out, r, generator=random) * strength
        tensors[f"base_model.model.{name}.lora_A.weight"] = down.to(dtype)
        tensors[f"base_model.model.{name}.lora_B.weight"] = up.to(dtype)
    save_file(tensors, folder / "adapter_model.safetensors")
    values = {**SETTINGS, "r": rank, **settings}
    (folder / "adapter_config.json").write_text(json.dumps(values), encoding="utf-8")
    return read_adapter(folder.name, folder)


def merged(model: Any, files: AdapterFiles) -> Any:
    """A copy of the model with the adapter in its weights."""
    found = copy.deepcopy(model)
    for name, delta in Adapters([files]).deltas[0].items():
        module = found.get_submodule(name)
        change = (delta.up @ delta.down).to(module.weight.dtype)
        change = change.T if type(module).__name__ == "Conv1D" else change
        module.weight = nn.Parameter(module.weight.detach() + change)  # its own, if it was tied
    return found
