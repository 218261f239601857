"""Reads adapters' weights, and checks that they fit the model's modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from safetensors import safe_open
from torch import Tensor

from sgc.errors import LoadError
from sgc.runtime.engine.model.adapters.files import AdapterFiles
from sgc.runtime.engine.model.decoders.deltas import Adapter, Delta, Deltas

_OTHER = "give the adapter of this model, or the model of this adapter"


class Adapters:
    """The adapters of an engine; a batch's rows refer to them by number, from 1 on."""

    def __init__(self, files: Sequence[AdapterFiles]) -> None:
        self._files = files
        self.deltas: list[Adapter] = [_read(each) for each in files]

    def check(self, model: Any) -> None:
        """Raises `LoadError` for an adapter of another model."""
        shapes = _shapes(model)
        for files, adapter in zip(self._files, self.deltas, strict=True):
            for name, delta in adapter.items():
                _check(files, name, delta, shapes.get(name), type(model).__name__)

    def of(self, model: Any) -> Deltas:
        """The deltas of a model's weights."""
        names = {name for adapter in self.deltas for name in adapter}
        weights = {name: m.weight for name, m in _modules(model).items() if name in names}
        return Deltas(self.deltas, weights)


def _read(files: AdapterFiles) -> Adapter:
    with safe_open(files.weights, framework="pt", device="cpu") as file:
        return {
            name: Delta(
                file.get_tensor(target.down).float(),
                file.get_tensor(target.up).float() * target.scale,
            )
            for name, target in files.modules.items()
        }


def _modules(model: Any) -> Mapping[str, Any]:
    """The modules that have a weight matrix, by name. model: transformers' or a plain one."""
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(weight := getattr(module, "weight", None), Tensor) and weight.ndim == 2
    }


def _shapes(model: Any) -> Mapping[str, tuple[int, int]]:
    """(n_out, n_in) of the linear modules that get exactly all rows, or the wanted ones."""
    found: dict[str, tuple[int, int]] = {}
    for name, module in _modules(model).items():
        kind = type(module).__name__
        if kind in ("Linear", "Projection", "Conv1D") and ".experts." not in name:
            n_out, n_in = module.weight.shape
            found[name] = (n_in, n_out) if kind == "Conv1D" else (n_out, n_in)
    return found


def _check(
    files: AdapterFiles, name: str, delta: Delta, shape: tuple[int, int] | None, model: str
) -> None:
    which = f"the adapter {files.name!r} ({files.folder})"
    if shape is None:
        raise LoadError(
            f"{which} is not for this model: it changes {name!r:.200}, which is no linear module "
            f"of {model} that an adapter can change here",
            hint=_OTHER,
        )
    theirs = (len(delta.up), delta.down.shape[1])
    if theirs != shape:
        raise LoadError(
            f"{which} is not for this model: {name!r:.200} has {shape[1]} inputs and {shape[0]} "
            f"outputs in {model}, and {theirs[1]} and {theirs[0]} in the adapter",
            hint=_OTHER,
        )
    if not (delta.down.isfinite().all() and delta.up.isfinite().all()):
        raise LoadError(f"{which} has numbers in {name!r:.200} that are not finite",
                        hint="save or download it again")  # fmt: skip
