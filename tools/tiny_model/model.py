"""The network that is trained: Llama's arithmetic in plain torch, with the parameter names of
transformers, so that a saved model loads as a `LlamaForCausalLM`.

It is written out because training needs the logits of only some positions, and casts weights to
bfloat16 once per step instead of once per use. `train.py` calls it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True, slots=True)
class Shape:
    """The network's sizes."""

    vocab_size: int
    hidden: int = 256
    inner: int = 768
    n_layers: int = 4
    n_heads: int = 4
    n_kv_heads: int = 2
    rope_theta: float = 10_000.0
    max_positions: int = 4096

    @property
    def head_dim(self) -> int:
        return self.hidden // self.n_heads

    def config(self, ends: list[int]) -> dict[str, Any]:
        """config.json. ends: the tokens that end a text.

        Weights are stored in bfloat16 and computed in float32, so that replies do not depend on
        batching.
        """
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden,
            "intermediate_size": self.inner,
            "num_hidden_layers": self.n_layers,
            "num_attention_heads": self.n_heads,
            "num_key_value_heads": self.n_kv_heads,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "max_position_embeddings": self.max_positions,
            "rms_norm_eps": 1e-5,
            "rope_theta": self.rope_theta,
            "tie_word_embeddings": True,
            "attention_bias": False,
            "mlp_bias": False,
            "bos_token_id": None,
            "eos_token_id": ends,
            "dtype": "float32",
        }


class Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.n_heads, self.n_kv = shape.n_heads, shape.n_kv_heads
        self.head_dim = shape.head_dim
        kv = shape.n_kv_heads * shape.head_dim
        self.q_proj = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.k_proj = nn.Linear(shape.hidden, kv, bias=False)
        self.v_proj = nn.Linear(shape.hidden, kv, bias=False)
        self.o_proj = nn.Linear(shape.hidden, shape.hidden, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        rows, length, _ = x.shape

        def heads(y: Tensor, n: int) -> Tensor:
            return y.view(rows, length, n, self.head_dim).transpose(1, 2)

        q = rotate(heads(self.q_proj(x), self.n_heads), cos, sin)
        k = rotate(heads(self.k_proj(x), self.n_kv), cos, sin)
        v = heads(self.v_proj(x), self.n_kv)
        repeats = self.n_heads // self.n_kv
        k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).reshape(rows, length, -1))


class Mlp(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.inner, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.inner, bias=False)
        self.down_proj = nn.Linear(shape.inner, shape.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden, eps=1e-5)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, eps=1e-5)
        self.mlp = Mlp(shape)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.n_layers))
        self.norm = nn.RMSNorm(shape.hidden, eps=1e-5)


class Llama(nn.Module):
    """The logits at chosen positions of rows of tokens; each row begins a text."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.model = Body(shape)
        inverse = shape.rope_theta ** (-torch.arange(0, shape.head_dim, 2) / shape.head_dim)
        angles = torch.outer(torch.arange(shape.max_positions), inverse).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self._init_weights(shape)

    def _init_weights(self, shape: Shape) -> None:
        for name, p in self.named_parameters():
            if p.dim() == 2:
                last = name.endswith(("o_proj.weight", "down_proj.weight"))
                scale = (2 * shape.n_layers) ** -0.5 if last else 1.0
                std = 0.02 if "embed" in name else p.shape[1] ** -0.5
                nn.init.normal_(p, std=std * scale)

    def forward(self, ids: Tensor, chosen: Tensor) -> Tensor:
        """ids: [rows, length]; chosen: indices into rows * length. Returns [n_chosen, vocab]."""
        length = ids.shape[1]
        x = self.model.embed_tokens(ids)
        cos, sin = self.cos[:length].to(x.dtype), self.sin[:length].to(x.dtype)
        for layer in self.model.layers:
            x = layer(x, cos, sin)
        x = self.model.norm(x.flatten(0, 1)[chosen])
        return F.linear(x, self.model.embed_tokens.weight)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding; x: [rows, heads, length, head_dim], halves apart as in Llama."""
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin
