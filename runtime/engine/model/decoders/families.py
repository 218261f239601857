"""The families whose decoders are known, and where a model of each keeps its weights.

A family is known only if every module of its model is: another name, type or setting is left to the
model's own code. What is found here is compared with the model's own logits at load all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

from sgc.kernels.interface import Heads
from sgc.kernels.layers import Activation, HeadLayout, Norm, Rope
from sgc.runtime.engine.model.decoders.decoder import Attention, Block, Decoder, Mlp, Product

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


def is_known(model: Any) -> bool:
    """Whether `decoder_of` finds every module of a transformers model."""
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


def decoder_of(model: Any) -> Decoder:
    """The parts of a model that `is_known`, or of a `plain_llama`; taking its blocks empties it."""
    family = _FAMILIES[type(model).__name__]
    body = model.model
    return Decoder(
        table=body.embed_tokens.weight.detach(),
        blocks=_blocks(body, family),
        norm=_norm(body.norm),
        head=_product(model.lm_head),
    )


def _blocks(body: Any, family: _Family) -> Iterator[Block]:
    rope = Rope(body.rotary_emb.inv_freq.float(), float(body.rotary_emb.attention_scaling))
    while len(body.layers):  # each is freed once taken, so that weights are held once
        layer = body.layers[0]
        del body.layers[0]
        yield Block(
            _attention(layer.self_attn, family, rope),
            _mlp(layer.mlp),
            norm=_norm(layer.input_layernorm),
            mlp_norm=_norm(layer.post_attention_layernorm),
        )


def _attention(attention: Any, family: _Family, rope: Rope) -> Attention:
    head_dim = int(attention.head_dim)
    n_heads, n_kv_heads = (p.out_features // head_dim for p in (attention.q_proj, attention.k_proj))
    q_norm = _norm(attention.q_norm) if family.has_qk_norm else None
    k_norm = _norm(attention.k_norm) if family.has_qk_norm else None
    return Attention(
        qkv=_product(attention.q_proj, attention.k_proj, attention.v_proj),
        out=_product(attention.o_proj),
        layout=HeadLayout(n_heads, n_kv_heads, head_dim, q_norm, k_norm, rope),
        heads=Heads(float(attention.scaling), family.window(attention) or None),
    )


def _mlp(mlp: Any) -> Mlp:
    return Mlp(
        into=_product(mlp.up_proj),
        out=_product(mlp.down_proj),
        activation=Activation.SILU,
        gate=_product(mlp.gate_proj),
    )


def _norm(module: Any) -> Norm:
    return Norm(module.weight.detach(), float(module.variance_epsilon))


def _product(*modules: Any) -> Product:
    biases = tuple(module.bias.detach() for module in modules if module.bias is not None)
    assert len(biases) in (0, len(modules)), "some of the layers have a bias, others none"
    return Product(tuple(module.weight.detach() for module in modules), biases)


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
