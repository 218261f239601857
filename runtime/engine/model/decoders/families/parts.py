"""A decoder's parts, made of the modules that have their weights. No weight is copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sgc.kernels.layers import Norm, Rope
from sgc.runtime.engine.model.decoders.decoder import Experts, Mlp, Product
from sgc.runtime.engine.model.decoders.families.modules import activation_of

RopeOf = Callable[[Any], Rope | None]
"""The rotation of an attention module."""


# -- norms --


def rms_norm(module: Any) -> Norm:
    return Norm(module.weight.detach(), float(module.variance_epsilon))


def rms_norm_plus_one(module: Any) -> Norm:
    """Gemma's: the weight is what is added to one."""
    return Norm(1.0 + module.weight.detach().float(), float(module.eps))


def layer_norm(module: Any) -> Norm:
    weight, bias = (None if t is None else t.detach() for t in (module.weight, module.bias))
    return Norm(weight, float(module.eps), bias, is_layer_norm=True)


def layer_norm_without_bias(module: Any) -> Norm:
    return Norm(module.weight.detach(), float(module.variance_epsilon), is_layer_norm=True)


# -- products --


def linear(*modules: Any) -> Product:
    biases = tuple(module.bias.detach() for module in modules if module.bias is not None)
    return Product(tuple(module.weight.detach() for module in modules), biases)


def conv1d(module: Any) -> Product:
    """GPT-2's, whose weight is [n_in, n_out]."""
    return Product((module.weight.detach().t(),), (module.bias.detach(),))


def rows(product: Product, starts: list[int], n: int) -> Product:
    """`n` rows of a product of one weight from each of `starts`, one after the other."""

    def cut(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(tensor[start : start + n] for tensor in tensors for start in starts)

    return Product(cut(product.weights), cut(product.biases))


def qkv_apart(attention: Any) -> Product:
    return linear(attention.q_proj, attention.k_proj, attention.v_proj)


def qkv_by_head(attention: Any) -> Product:
    """GPT-NeoX's: Q, K and V of the first head, then those of the next."""
    product, n = linear(attention.query_key_value), int(attention.head_size)
    n_parts = product.n_out // n
    return rows(product, [i * n for part in range(3) for i in range(part, n_parts, 3)], n)


# -- MLPs --


def gated_mlp(mlp: Any) -> Mlp:
    into, out, gate = (linear(module) for module in (mlp.up_proj, mlp.down_proj, mlp.gate_proj))
    return Mlp(into, out, _activation(mlp.act_fn), gate)


def merged_mlp(mlp: Any) -> Mlp:
    """Phi-3's: gate and up are halves of one weight."""
    both = linear(mlp.gate_up_proj)
    n = both.n_out // 2
    gate, into = rows(both, [0], n), rows(both, [n], n)
    return Mlp(into, linear(mlp.down_proj), _activation(mlp.activation_fn), gate)


def plain_mlp(
    into: str, out: str, activation: str, product: Callable[[Any], Product] = linear
) -> Callable[[Any], Mlp]:
    """Of the modules with these names."""
    return lambda mlp: Mlp(
        product(getattr(mlp, into)),
        product(getattr(mlp, out)),
        _activation(getattr(mlp, activation)),
    )


def experts(block: Any, is_normed: bool = True) -> Experts:
    """A mixture whose experts' weights lie in one tensor: [n_experts, gate and up, hidden]."""
    both, down = block.experts.gate_up_proj.detach(), block.experts.down_proj.detach()
    n, activation = both.shape[1] // 2, _activation(block.experts.act_fn)
    mlps = (
        Mlp(Product((into[n:],)), Product((out,)), activation, gate=Product((into[:n],)))
        for into, out in zip(both, down, strict=True)
    )
    router = Product((block.gate.weight.detach(),))
    return Experts(router, tuple(mlps), int(block.gate.top_k), is_normed)


def experts_or_mlp(mlp: Any) -> Experts | Mlp:
    """Qwen 3's: some layers have no experts."""
    if not hasattr(mlp, "experts"):
        return gated_mlp(mlp)
    return experts(mlp, bool(mlp.gate.norm_topk_prob))


def _activation(module: Any) -> Any:
    found = activation_of(module)
    assert found is not None, f"the activation {type(module).__name__} is not known"
    return found


# -- positions --


def no_rope(body: Any) -> RopeOf:
    return lambda attention: None


def rope(body: Any, is_interleaved: bool = False) -> RopeOf:
    """One for all layers."""
    one = _rope(body.rotary_emb, "", is_interleaved)
    return lambda attention: one


def interleaved_rope(body: Any) -> RopeOf:
    return rope(body, is_interleaved=True)


def rope_where_used(body: Any) -> RopeOf:
    """SmolLM3's: some layers do not rotate."""
    one = _rope(body.rotary_emb)
    return lambda attention: one if attention.use_rope else None


def rope_of_type(body: Any) -> RopeOf:
    """Gemma 3's: layers with a window rotate otherwise than those without."""
    rotary = body.rotary_emb
    ropes = {kind: _rope(rotary, f"{kind}_") for kind in rotary.layer_types}
    return lambda attention: ropes[attention.layer_type]


def _rope(rotary: Any, prefix: str = "", is_interleaved: bool = False) -> Rope:
    inverse: Tensor = getattr(rotary, f"{prefix}inv_freq")
    scale = float(getattr(rotary, f"{prefix}attention_scaling"))
    return Rope(inverse.to(torch.float32), scale, is_interleaved)
