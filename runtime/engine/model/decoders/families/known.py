"""The decoder of a model whose family is known (`table.py`).

A family is known only if every module of its model is: another name, type or setting is left to the
model's own code. What is found here is compared with the model's own logits at load all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from sgc.kernels.interface import Heads
from sgc.kernels.layers import HeadLayout, Norm, Rope
from sgc.runtime.engine.model.decoders.decoder import Attention, Block, Decoder
from sgc.runtime.engine.model.decoders.families import parts
from sgc.runtime.engine.model.decoders.families.family import Family, QkNorm
from sgc.runtime.engine.model.decoders.families.table import FAMILIES

# Within `max_context_of` each of them gives a position one angle.
_ROPE_TYPES = {"default", "linear", "llama3", "yarn", "dynamic", "longrope"}


def is_known(model: Any) -> bool:
    """Whether `decoder_of` knows every module and setting of a transformers model."""
    family = FAMILIES.get(type(model).__name__)
    if family is None or not family.structure.is_of(model):
        return False
    layers = _layers(model, family)
    return (
        len(layers) > 0
        and getattr(model.config, "quantization_config", None) is None
        and _is_causal(model)
        and _rope_types(model.config) <= _ROPE_TYPES
        and all(family.is_usual(layer) for layer in layers)
        and _rotates_heads(model, family)
    )


def decoder_of(model: Any) -> Decoder:
    """The parts of a model that `is_known`, or of a `plain_llama`; taking its blocks empties it."""
    family = FAMILIES[type(model).__name__]
    body, scales = _body(model, family), family.scales(model)
    return Decoder(
        table=_at(body, family.names.table).weight.detach(),
        blocks=_blocks(model, family),
        norm=family.norm(_at(body, family.names.last_norm)),
        head=parts.linear(model.lm_head),
        table_scale=scales.table,
        positions=family.positions(body),
        logit_scale=scales.logits,
        logit_cap=scales.logit_cap,
    )


def _blocks(model: Any, family: Family) -> Iterator[Block]:
    layers, rope_of = _layers(model, family), family.ropes(_body(model, family))
    while len(layers):  # each is freed once taken, so that weights are held once
        layer = layers[0]
        del layers[0]
        yield _block(layer, family, rope_of)


def _block(layer: Any, family: Family, rope_of: parts.RopeOf) -> Block:
    names = family.names
    attention = _at(layer, names.attention)

    def norm(name: str | None) -> Norm | None:
        module = None if name is None else _at(layer, name)
        return None if module is None else family.norm(module)

    return Block(
        _attention(attention, family, rope_of(attention)),
        family.mlp(_at(layer, names.mlp)),
        norm=norm(names.norm),
        mlp_norm=norm(names.mlp_norm),
        post_norm=norm(names.post_norm),
        mlp_post_norm=norm(names.mlp_post_norm),
        scale=family.residual_scale(layer),
        is_parallel=family.is_parallel(layer),
    )


def _attention(attention: Any, family: Family, rope: Rope | None) -> Attention:
    qkv, out = family.qkv(attention), family.product(_at(attention, family.names.out))
    head_dim = int(_at(attention, family.names.head_dim))
    n_heads = out.n_in // head_dim
    n_kv_heads = (qkv.n_out // head_dim - n_heads) // 2
    norms = _qk_norms(attention, family)
    each = norms if family.qk_norm is QkNorm.EACH_HEAD else (None, None)
    together = norms if family.qk_norm is QkNorm.ALL_HEADS else (None, None)
    window, softcap = family.window(attention), family.softcap(attention)
    return Attention(
        qkv,
        out,
        HeadLayout(n_heads, n_kv_heads, head_dim, each[0], each[1], rope),
        Heads(float(attention.scaling), window or None, softcap),
        together[0],
        together[1],
    )


def _qk_norms(attention: Any, family: Family) -> tuple[Norm | None, Norm | None]:
    if family.qk_norm is QkNorm.NONE:
        return None, None
    return family.norm(attention.q_norm), family.norm(attention.k_norm)


def _is_causal(model: Any) -> bool:
    return not getattr(model.config, "use_bidirectional_attention", False) and all(
        getattr(one, "is_causal", True) is True for one in (model.config, *model.modules())
    )


def _rope_types(config: Any) -> set[Any]:
    """Of all layers; what is not given is nothing that rotates otherwise."""
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = [rope, *(value for value in rope.values() if isinstance(value, dict))]
    return {kind["rope_type"] for kind in kinds if "rope_type" in kind}


def _rotates_heads(model: Any, family: Family) -> bool:
    """Whether as many of a head's dimensions are rotated as there are, or fewer where that is so
    in the family."""
    rope_of = family.ropes(_body(model, family))
    for layer in _layers(model, family):
        attention = _at(layer, family.names.attention)
        rope, head_dim = rope_of(attention), int(_at(attention, family.names.head_dim))
        n = head_dim if rope is None else rope.n_rotated
        if n > head_dim or (n < head_dim and not family.rotates_part):
            return False
    return True


def _body(model: Any, family: Family) -> Any:
    return _at(model, family.names.body)


def _layers(model: Any, family: Family) -> Any:
    return _at(_body(model, family), family.names.layers)


def _at(module: Any, path: str) -> Any:
    """path: names with dots between; an empty one leads to the module itself."""
    return attrgetter(path)(module) if path else module
