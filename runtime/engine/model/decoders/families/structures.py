"""What each known family's modules are made of, by transformers' names."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from sgc.runtime.engine.model.decoders.families.modules import (
    ANY_ACTIVATION,
    CONV1D,
    GATE_ACTIVATION,
    Kind,
    Parts,
)


def linears(*names: str) -> dict[str, Kind]:
    return dict.fromkeys(names, nn.Linear)


LLAMA: Parts = {
    "ForCausalLM": {"model": "Model", "lm_head": nn.Linear},
    "Model": {
        "embed_tokens": nn.Embedding,
        "layers": "DecoderLayer",
        "norm": "RMSNorm",
        "rotary_emb": "RotaryEmbedding",
    },
    "DecoderLayer": {
        "self_attn": "Attention",
        "mlp": "MLP",
        "input_layernorm": "RMSNorm",
        "post_attention_layernorm": "RMSNorm",
    },
    "Attention": linears("q_proj", "k_proj", "v_proj", "o_proj"),
    "MLP": {**linears("gate_proj", "up_proj", "down_proj"), "act_fn": GATE_ACTIVATION},
}


def changed(structure: Parts, **parts: Mapping[str, Kind]) -> Parts:
    """The structure, in which some kinds have other parts, or more than they had."""
    return {**structure, **{kind: {**structure.get(kind, {}), **p} for kind, p in parts.items()}}


_QK_NORMS = {"q_norm": "RMSNorm", "k_norm": "RMSNorm"}
QWEN3 = changed(LLAMA, Attention=_QK_NORMS)
_EXPERTS: Parts = {
    "SparseMoeBlock": {"experts": "Experts", "gate": "TopKRouter"},
    "Experts": {
        "gate_up_proj": nn.Parameter,
        "down_proj": nn.Parameter,
        "act_fn": GATE_ACTIVATION,
    },
    "TopKRouter": {"weight": nn.Parameter},
}
QWEN3_MOE = {**changed(QWEN3, DecoderLayer={"mlp": ("SparseMoeBlock", "MLP")}), **_EXPERTS}
MIXTRAL = {**changed(LLAMA, DecoderLayer={"mlp": "SparseMoeBlock"}), **_EXPERTS}
GEMMA = changed(LLAMA, Model={"embed_tokens": "TextScaledWordEmbedding"})
GEMMA2 = changed(
    GEMMA,
    DecoderLayer={
        "pre_feedforward_layernorm": "RMSNorm",
        "post_feedforward_layernorm": "RMSNorm",
    },
)
GEMMA3 = {
    **changed(GEMMA2, ForCausalLM={"model": "TextModel"}, Attention=_QK_NORMS),
    "TextModel": GEMMA2["Model"],
}
_LAYER_NORMS = changed(
    LLAMA,
    Model={"norm": nn.LayerNorm},
    DecoderLayer={
        "input_layernorm": nn.LayerNorm,
        "post_attention_layernorm": nn.LayerNorm,
    },
)
STABLELM = changed(
    _LAYER_NORMS,
    DecoderLayer={
        "post_attention_layernorm": (nn.LayerNorm, None),  # parallel layers have none
        "dropout": nn.Dropout,
    },
)
OLMO2 = {
    **QWEN3,
    "DecoderLayer": {
        "self_attn": "Attention",
        "mlp": "MLP",
        "post_attention_layernorm": "RMSNorm",
        "post_feedforward_layernorm": "RMSNorm",
    },
}
COHERE = {
    **changed(LLAMA, Model={"norm": "LayerNorm"}),
    "DecoderLayer": {"self_attn": "Attention", "mlp": "MLP", "input_layernorm": "LayerNorm"},
}
STARCODER2 = {
    **_LAYER_NORMS,
    "MLP": {**linears("c_fc", "c_proj"), "act": ANY_ACTIVATION},
}
PHI = {
    "ForCausalLM": LLAMA["ForCausalLM"],
    "Model": {
        "embed_tokens": nn.Embedding,
        "layers": "DecoderLayer",
        "rotary_emb": "RotaryEmbedding",
        "embed_dropout": nn.Dropout,
        "final_layernorm": nn.LayerNorm,
    },
    "DecoderLayer": {
        "self_attn": "Attention",
        "mlp": "MLP",
        "input_layernorm": nn.LayerNorm,
        "resid_dropout": nn.Dropout,
    },
    "Attention": linears("q_proj", "k_proj", "v_proj", "dense"),
    "MLP": {**linears("fc1", "fc2"), "activation_fn": ANY_ACTIVATION},
}
PHI3 = {
    **changed(
        LLAMA,
        DecoderLayer={"resid_attn_dropout": nn.Dropout, "resid_mlp_dropout": nn.Dropout},
    ),
    "Attention": linears("qkv_proj", "o_proj"),
    "MLP": {**linears("gate_up_proj", "down_proj"), "activation_fn": GATE_ACTIVATION},
}
GPT_NEOX = {
    "ForCausalLM": {"gpt_neox": "Model", "lm_head": nn.Linear},
    "Model": {
        "embed_in": nn.Embedding,
        "emb_dropout": nn.Dropout,
        "layers": "Layer",
        "final_layer_norm": nn.LayerNorm,
        "rotary_emb": "RotaryEmbedding",
    },
    "Layer": {
        "input_layernorm": nn.LayerNorm,
        "post_attention_layernorm": nn.LayerNorm,
        "post_attention_dropout": nn.Dropout,
        "post_mlp_dropout": nn.Dropout,
        "attention": "Attention",
        "mlp": "MLP",
    },
    "Attention": linears("query_key_value", "dense"),
    "MLP": {**linears("dense_h_to_4h", "dense_4h_to_h"), "act": ANY_ACTIVATION},
}
GPT2 = {
    "LMHeadModel": {"transformer": "Model", "lm_head": nn.Linear},
    "Model": {
        "wte": nn.Embedding,
        "wpe": nn.Embedding,
        "drop": nn.Dropout,
        "h": "Block",
        "ln_f": nn.LayerNorm,
    },
    "Block": {"ln_1": nn.LayerNorm, "attn": "Attention", "ln_2": nn.LayerNorm, "mlp": "MLP"},
    "Attention": {
        "c_attn": CONV1D,
        "c_proj": CONV1D,
        "attn_dropout": nn.Dropout,
        "resid_dropout": nn.Dropout,
    },
    "MLP": {"c_fc": CONV1D, "c_proj": CONV1D, "act": ANY_ACTIVATION, "dropout": nn.Dropout},
}
OPT = {
    "ForCausalLM": LLAMA["ForCausalLM"],
    "Model": {"decoder": "Decoder"},
    "Decoder": {
        "embed_tokens": nn.Embedding,
        "embed_positions": "LearnedPositionalEmbedding",
        "final_layer_norm": nn.LayerNorm,
        "layers": "DecoderLayer",
    },
    "DecoderLayer": {
        "self_attn": "Attention",
        "self_attn_layer_norm": nn.LayerNorm,
        "activation_fn": ANY_ACTIVATION,
        **linears("fc1", "fc2"),
        "final_layer_norm": nn.LayerNorm,
    },
    "Attention": linears("q_proj", "k_proj", "v_proj", "out_proj"),
}
