"""The known families: a row for each, by the name of the class of its models."""

from __future__ import annotations

from typing import Any

from sgc.runtime.engine.model.decoders.families import parts
from sgc.runtime.engine.model.decoders.families import structures as made
from sgc.runtime.engine.model.decoders.families.family import Family, Names, QkNorm, Scales
from sgc.runtime.engine.model.decoders.families.modules import Structure


def _own_window(attention: Any) -> int | None:
    window: int | None = attention.sliding_window
    return window


def _config_window(attention: Any) -> int | None:
    """One for all layers."""
    window: int | None = attention.config.sliding_window
    return window


def _gemma_scales(model: Any) -> Scales:
    """The table's scale as it is rounded before it is used."""
    table = model.model.embed_tokens
    return Scales(
        table=float(table.embed_scale.to(table.weight.dtype)),
        logit_cap=getattr(model.config, "final_logit_softcapping", None),
    )


def _granite_scales(model: Any) -> Scales:
    return Scales(
        table=float(model.model.embedding_multiplier),
        logits=1.0 / float(model.config.logits_scaling),
    )


_ALL_NORMS = Names(
    post_norm="post_attention_layernorm",
    mlp_norm="pre_feedforward_layernorm",
    mlp_post_norm="post_feedforward_layernorm",
)

FAMILIES = {
    "LlamaForCausalLM": Family(Structure("Llama", made.LLAMA)),
    "MistralForCausalLM": Family(Structure("Mistral", made.LLAMA), window=_config_window),
    "Qwen2ForCausalLM": Family(Structure("Qwen2", made.LLAMA), window=_own_window),
    "Qwen3ForCausalLM": Family(
        Structure("Qwen3", made.QWEN3),
        window=_own_window,
        qk_norm=QkNorm.EACH_HEAD,
    ),
    "Qwen3MoeForCausalLM": Family(
        Structure("Qwen3Moe", made.QWEN3_MOE),
        window=_own_window,
        qk_norm=QkNorm.EACH_HEAD,
        mlp=parts.experts_or_mlp,
    ),
    "MixtralForCausalLM": Family(
        Structure("Mixtral", made.MIXTRAL), window=_config_window, mlp=parts.experts
    ),
    "SmolLM3ForCausalLM": Family(
        Structure("SmolLM3", made.LLAMA), window=_own_window, ropes=parts.rope_where_used
    ),
    "GraniteForCausalLM": Family(
        Structure("Granite", made.LLAMA),
        scales=_granite_scales,
        residual_scale=lambda layer: float(layer.residual_multiplier),
    ),
    "GemmaForCausalLM": Family(
        Structure("Gemma", made.GEMMA), norm=parts.rms_norm_plus_one, scales=_gemma_scales
    ),
    "Gemma2ForCausalLM": Family(
        Structure("Gemma2", made.GEMMA2),
        _ALL_NORMS,
        norm=parts.rms_norm_plus_one,
        window=_own_window,
        softcap=lambda attention: attention.attn_logit_softcapping,
        scales=_gemma_scales,
    ),
    "Gemma3ForCausalLM": Family(
        Structure("Gemma3", made.GEMMA3),
        _ALL_NORMS,
        norm=parts.rms_norm_plus_one,
        qk_norm=QkNorm.EACH_HEAD,
        ropes=parts.rope_of_type,
        window=_own_window,
        scales=_gemma_scales,
    ),
    "Olmo2ForCausalLM": Family(
        Structure("Olmo2", made.OLMO2),
        Names(
            norm=None,
            mlp_norm=None,
            post_norm="post_attention_layernorm",
            mlp_post_norm="post_feedforward_layernorm",
        ),
        qk_norm=QkNorm.ALL_HEADS,
    ),
    "CohereForCausalLM": Family(
        Structure("Cohere", made.COHERE),
        Names(mlp_norm=None),
        norm=parts.layer_norm_without_bias,
        ropes=parts.interleaved_rope,
        scales=lambda model: Scales(logits=float(model.logit_scale)),
        is_parallel=lambda layer: True,
    ),
    "StableLmForCausalLM": Family(
        Structure("StableLm", made.STABLELM),
        norm=parts.layer_norm,
        rotates_part=True,
        is_parallel=lambda layer: layer.use_parallel_residual,
        is_usual=lambda layer: (
            layer.use_parallel_residual == (layer.post_attention_layernorm is None)
        ),
    ),
    "Starcoder2ForCausalLM": Family(
        Structure("Starcoder2", made.STARCODER2),
        norm=parts.layer_norm,
        mlp=parts.plain_mlp("c_fc", "c_proj", "act"),
        window=_config_window,
    ),
    "PhiForCausalLM": Family(
        Structure("Phi", made.PHI),
        Names(last_norm="final_layernorm", mlp_norm=None, out="dense"),
        norm=parts.layer_norm,
        mlp=parts.plain_mlp("fc1", "fc2", "activation_fn"),
        rotates_part=True,
        is_parallel=lambda layer: True,
    ),
    "Phi3ForCausalLM": Family(
        Structure("Phi3", made.PHI3),
        qkv=lambda attention: parts.linear(attention.qkv_proj),
        mlp=parts.merged_mlp,
        rotates_part=True,
        window=_config_window,
    ),
    "GPTNeoXForCausalLM": Family(
        Structure("GPTNeoX", made.GPT_NEOX),
        Names(
            body="gpt_neox",
            table="embed_in",
            last_norm="final_layer_norm",
            attention="attention",
            out="dense",
            head_dim="head_size",
        ),
        norm=parts.layer_norm,
        qkv=parts.qkv_by_head,
        mlp=parts.plain_mlp("dense_h_to_4h", "dense_4h_to_h", "act"),
        rotates_part=True,
        is_parallel=lambda layer: layer.use_parallel_residual,
    ),
    "GPT2LMHeadModel": Family(
        Structure("GPT2", made.GPT2),
        Names(
            body="transformer",
            table="wte",
            layers="h",
            last_norm="ln_f",
            attention="attn",
            norm="ln_1",
            mlp_norm="ln_2",
            out="c_proj",
        ),
        norm=parts.layer_norm,
        product=parts.conv1d,
        qkv=lambda attention: parts.conv1d(attention.c_attn),
        mlp=parts.plain_mlp("c_fc", "c_proj", "act", parts.conv1d),
        ropes=parts.no_rope,
        positions=lambda body: body.wpe.weight.detach(),
    ),
    "OPTForCausalLM": Family(
        Structure("OPT", made.OPT),
        Names(
            body="model.decoder",
            last_norm="final_layer_norm",
            mlp="",
            norm="self_attn_layer_norm",
            mlp_norm="final_layer_norm",
            out="out_proj",
        ),
        norm=parts.layer_norm,
        mlp=parts.plain_mlp("fc1", "fc2", "activation_fn"),
        ropes=parts.no_rope,
        positions=lambda body: body.embed_positions.weight.detach()[body.embed_positions.offset :],
        is_usual=lambda layer: layer.do_layer_norm_before,
    ),
}
