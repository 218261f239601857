"""The modules that a family's models are made of. A model is known only if all of its modules are.

A model with a module, parameter or class more or less is refused, and one with anything that
changes what a module computes: hooks, another `forward`, parameters of another type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sgc.kernels.layers import Activation

Kind = Any
"""What a part may be: a class of torch; the name of a class, which is the family's own without its
prefix unless there is a dot in it; a set of activations; None if it may be absent; or a tuple of
these. A list of modules is of a kind if each of them is."""

Parts = Mapping[str, Mapping[str, Kind]]
"""The children and parameters of each kind of module."""

ACTIVATIONS = {
    "SiLU": Activation.SILU,
    "SiLUActivation": Activation.SILU,
    "GELUActivation": Activation.GELU,
    "GELUTanh": Activation.GELU_TANH,
    "NewGELUActivation": Activation.GELU_TANH,
    "FastGELUActivation": Activation.GELU_TANH,
    "AccurateGELUActivation": Activation.GELU_TANH,
    "ReLU": Activation.RELU,
}
ANY_ACTIVATION = frozenset(Activation)
GATE_ACTIVATION = frozenset((Activation.SILU, Activation.GELU_TANH))
CONV1D = "transformers.pytorch_utils.Conv1D"


def activation_of(module: Any) -> Activation | None:
    """None: it is not known."""
    home = type(module).__module__
    is_theirs = home in ("torch.nn.modules.activation", "transformers.activations")
    return ACTIVATIONS.get(type(module).__name__) if is_theirs else None


@dataclass(frozen=True, slots=True)
class Structure:
    """prefix: of the names of a family's classes. parts: a kind of module that is not there has
    none but a weight and a bias."""

    prefix: str
    parts: Parts

    def is_of(self, model: nn.Module) -> bool:
        home, name = type(model).__module__, type(model).__name__
        if not home.startswith("transformers.models.") or not name.startswith(self.prefix):
            return False
        check = _Check(self, home, model.dtype, model.device)
        return check.fits(model, name.removeprefix(self.prefix))


@dataclass(frozen=True, slots=True)
class _Check:
    """home: where the family's classes are defined. dtype, device: of all parameters."""

    structure: Structure
    home: str
    dtype: Any
    device: Any

    def fits(self, part: Any, kind: Kind) -> bool:
        if isinstance(kind, tuple):
            return any(self.fits(part, one) for one in kind)
        if part is None or kind is None:
            return part is kind
        if isinstance(part, nn.Parameter):
            return kind is nn.Parameter and self._is_plain(part)
        if type(part) is nn.ModuleList:
            return _is_unchanged(part) and all(self.fits(module, kind) for module in part)
        return _is_unchanged(part) and self._has_class(part, kind) and self._fit_parts(part, kind)

    def _has_class(self, module: nn.Module, kind: Kind) -> bool:
        if isinstance(kind, frozenset):
            return activation_of(module) in kind
        if isinstance(kind, str):
            name = kind if "." in kind else f"{self.home}.{self.structure.prefix}{kind}"
            return f"{type(module).__module__}.{type(module).__name__}" == name
        return type(module) is kind

    def _fit_parts(self, module: nn.Module, kind: Kind) -> bool:
        found = {**dict(module.named_children()), **dict(module.named_parameters(recurse=False))}
        known = self.structure.parts.get(kind) if isinstance(kind, str) else None
        if known is None:
            known = dict.fromkeys(("weight", "bias"), (nn.Parameter, None))
        return found.keys() <= known.keys() and all(
            self.fits(found.get(name), kind) for name, kind in known.items()
        )

    def _is_plain(self, parameter: nn.Parameter) -> bool:
        return (
            type(parameter.data) is Tensor
            and parameter.layout == torch.strided
            and parameter.dtype == self.dtype
            and parameter.device == self.device
        )


def _is_unchanged(module: nn.Module) -> bool:
    """Whether nothing but its class says what a module computes."""
    hooks = (module._forward_hooks, module._forward_pre_hooks)
    return not any(hooks) and "forward" not in vars(module)
