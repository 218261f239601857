"""Our own forward of the common decoder: Llama, Mistral, Qwen2, Qwen3. It takes the weights of a
transformers model and runs a layer in a dozen operations, where the stock modules take fifty: Q, K
and V are one matrix product, activations and residuals are fused into products, rotary tables are
computed once per step, and the last layer continues only for the wanted tokens.

It is used only if it knows every module of the model; other models run on their own modules
(`transformers_model.py`). Like these, it is compared with the model's own logits at load
(`self_check.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sgc.kernels.interface import Heads
from sgc.runtime.engine.cache.kv_pool import Step
from sgc.runtime.engine.model.packed import Linear

_PROJECTIONS = {"q_proj", "k_proj", "v_proj", "o_proj"}
_MODEL = {"embed_tokens", "layers", "norm", "rotary_emb"}
_LAYER = {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}
_MLP = {"gate_proj", "up_proj", "down_proj"}


@dataclass(frozen=True, slots=True)
class _Family:
    """How a family differs from the others. window: an attention module's sliding window."""

    has_qk_norm: bool = False
    window: Callable[[Any], int | None] = lambda attention: None


_FAMILIES = {
    "LlamaForCausalLM": _Family(),
    "MistralForCausalLM": _Family(window=lambda a: a.config.sliding_window),
    "Qwen2ForCausalLM": _Family(window=lambda a: a.sliding_window),
    "Qwen3ForCausalLM": _Family(window=lambda a: a.sliding_window, has_qk_norm=True),
}


def is_understood(model: Any) -> bool:
    """Whether this file computes every module of the model."""
    family = _FAMILIES.get(type(model).__name__)
    if family is None or not type(model).__module__.startswith("transformers.models."):
        return False
    attention = _PROJECTIONS | ({"q_norm", "k_norm"} if family.has_qk_norm else set())
    return (
        model.config.hidden_act == "silu"
        and getattr(model.config, "quantization_config", None) is None
        and _names(model) == {"model", "lm_head"}
        and _names(model.model) == _MODEL
        and all(_is_known(layer, attention) for layer in model.model.layers)
        and _is_whole_rotary(model)
        and not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    )


def _is_known(layer: Any, attention: set[str]) -> bool:
    """Whether a layer has the known modules; the configuration tells the activation."""
    linears = [getattr(layer.self_attn, name) for name in _PROJECTIONS]
    return (
        _names(layer) == _LAYER
        and _names(layer.self_attn) == attention
        and _names(layer.mlp) - {"act_fn"} == _MLP
        and all(
            type(linear) is nn.Linear
            for linear in (*linears, *(getattr(layer.mlp, name) for name in _MLP))
        )
    )


def _is_whole_rotary(model: Any) -> bool:
    """Whether all of a head's dimensions are rotated."""
    inverse = model.model.rotary_emb.inv_freq
    return 2 * int(inverse.shape[0]) == int(model.model.layers[0].self_attn.head_dim)


def _names(module: nn.Module) -> set[str]:
    return {name for name, _ in module.named_children()}


@dataclass(frozen=True, slots=True)
class _Norm:
    """RMS norm. weight: [size]."""

    weight: Tensor
    eps: float

    @classmethod
    def of(cls, module: Any) -> _Norm:
        return cls(module.weight.detach(), float(module.variance_epsilon))

    def __call__(self, x: Tensor) -> Tensor:
        # Takes half the time of torch's own RMS norm for many rows, and the same for one.
        wide = x.to(torch.float32, copy=True)
        norm = torch.linalg.vector_norm(wide, 2, -1, True)
        scale = norm.square_().mul_(1 / x.shape[-1]).add_(self.eps).rsqrt_()
        return wide.mul_(scale).to(x.dtype).mul_(self.weight)


class _Layer:
    def __init__(self, index: int, layer: Any, family: _Family) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self.index = index
        self.head_dim = int(attention.head_dim)
        self.n_q, self.n_kv = (
            p.out_features // self.head_dim for p in (attention.q_proj, attention.k_proj)
        )
        self.heads = Heads(float(attention.scaling), family.window(attention) or None)
        self.norm, self.mlp_norm = (
            _Norm.of(norm) for norm in (layer.input_layernorm, layer.post_attention_layernorm)
        )
        self.q_norm = _Norm.of(attention.q_norm) if family.has_qk_norm else None
        self.k_norm = _Norm.of(attention.k_norm) if family.has_qk_norm else None
        self.qkv = Linear.of(attention.q_proj, attention.k_proj, attention.v_proj)
        self.o = Linear.of(attention.o_proj)
        self.gate, self.up, self.down = (
            Linear.of(p) for p in (mlp.gate_proj, mlp.up_proj, mlp.down_proj)
        )

    def attend(self, x: Tensor, rope: tuple[Tensor, Tensor], step: Step) -> Tensor:
        """x: [n_tokens, hidden]. Returns [n_tokens, n_heads * head_dim]."""
        heads = self.qkv(self.norm(x)).view(len(x), -1, self.head_dim)
        n_rotated = self.n_q + self.n_kv
        if self.q_norm is not None and self.k_norm is not None:
            heads[:, : self.n_q] = self.q_norm(heads[:, : self.n_q])
            heads[:, self.n_q : n_rotated] = self.k_norm(heads[:, self.n_q : n_rotated])
        _rotate(heads[:, :n_rotated], *rope)
        q, k, v = torch.split(heads, [self.n_q, self.n_kv, self.n_kv], 1)
        return step.attend(self.index, q, k, v, self.heads).flatten(1)

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        x = self.o.plus(attended, x)
        h = self.mlp_norm(x)
        return self.down.plus(self.up.times(h, self.gate.silu(h)), x)


class FusedModel:
    """Takes the weights out of a model that `is_understood`, which makes it unusable."""

    def __init__(self, model: Any) -> None:
        family = _FAMILIES[type(model).__name__]
        body = model.model
        self._embedding = body.embed_tokens.weight.detach()
        self._rotary = body.rotary_emb
        self._norm = _Norm.of(body.norm)
        is_tied = model.lm_head.weight is body.embed_tokens.weight
        self._head = Linear.of(model.lm_head, is_read_elsewhere=is_tied)
        self._layers: list[_Layer] = []
        while len(body.layers):  # each is freed once copied, so that weights are held once
            self._layers.append(_Layer(len(self._layers), body.layers[0], family))
            del body.layers[0]

    def __call__(self, tokens: Tensor, positions: Tensor, wanted: Tensor, step: Step) -> Tensor:
        """tokens, positions: [n_tokens]; wanted: [n_logits] of them. Returns [n_logits, vocab]."""
        x = F.embedding(tokens, self._embedding)
        rope = self._rope(x, positions)
        *layers, last = self._layers
        for layer in layers:
            x = layer.finish(x, layer.attend(x, rope, step))
        attended = last.attend(x, rope, step)
        if len(wanted) == 0:
            return x.new_empty(0, self._head.n_out)
        if len(wanted) < len(tokens):
            x, attended = x[wanted], attended[wanted]
        return self._head(self._norm(last.finish(x, attended)))

    def _rope(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """[n_tokens, 1, head_dim] each; the sine with the sign that `_rotate` needs."""
        cos, sin = self._rotary(x, positions[None])
        sin[..., : sin.shape[-1] // 2].neg_()
        return cos[0, :, None], sin[0, :, None]


def _rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> None:
    """In place. heads: [n_tokens, n_heads, head_dim]."""
    other_half = heads.roll(heads.shape[-1] // 2, -1)
    heads.mul_(cos).addcmul_(other_half, sin)
