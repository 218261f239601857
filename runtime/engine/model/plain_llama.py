"""A Llama or a Qwen2 in plain torch operations, as transformers' eager classes compute it, bit for
bit.

Importing transformers takes longer than the rest of an engine's start. For these two families this
file has all that they compute, so that it is not imported. `plain_files.py` builds the model if it
knows all its settings. The model runs whole sequences, for `self_check.py`; requests run on
`native.py` or `fused.py`, which take its weights by the names of transformers' modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class LlamaConfig:
    """The settings, by their names in config.json. attention_bias: of Q, K and V; output_bias: of
    attention's output."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float
    tie_word_embeddings: bool
    attention_bias: bool
    output_bias: bool
    mlp_bias: bool

    def get_text_config(self) -> LlamaConfig:
        return self


@dataclass(frozen=True, slots=True)
class Projection:
    """weight: [out_features, in_features]; bias: [out_features]."""

    weight: Tensor
    bias: Tensor | None = None

    @property
    def out_features(self) -> int:
        return int(self.weight.shape[0])

    @property
    def in_features(self) -> int:
        return int(self.weight.shape[1])

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class Norm:
    weight: Tensor
    variance_epsilon: float

    def __call__(self, x: Tensor) -> Tensor:
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.to(x.dtype)


class Rotary:
    """The cosines and sines of positions: [..., head_dim] each, in the type of `x`."""

    def __init__(self, config: LlamaConfig, device: torch.device | str = "cpu") -> None:
        exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float) / config.head_dim
        self.inv_freq = (1.0 / (config.rope_theta**exponents)).to(device)
        self.attention_scaling = 1.0

    def __call__(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        angles = positions[..., None].float() * self.inv_freq
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


@dataclass(frozen=True, slots=True)
class Attention:
    q_proj: Projection
    k_proj: Projection
    v_proj: Projection
    o_proj: Projection
    head_dim: int
    sliding_window: ClassVar[None] = None

    @property
    def scaling(self) -> float:
        return float(self.head_dim**-0.5)

    def __call__(self, x: Tensor, rope: tuple[Tensor, Tensor]) -> Tensor:
        """Causal attention. x: [n_sequences, n_tokens, hidden]."""
        q, k, v = (
            projected.view(*x.shape[:-1], -1, self.head_dim).transpose(1, 2)
            for projected in (self.q_proj(x), self.k_proj(x), self.v_proj(x))
        )
        q, k = _rotated(q, *rope), _rotated(k, *rope)
        n_shared = q.shape[1] // k.shape[1]
        k, v = (heads.repeat_interleave(n_shared, dim=1) for heads in (k, v))
        weights = torch.matmul(q, k.transpose(2, 3)) * self.scaling
        later = torch.ones(weights.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        weights = weights.masked_fill(later, float("-inf"))
        weights = F.softmax(weights, dim=-1, dtype=torch.float32).to(x.dtype)
        return self.o_proj(torch.matmul(weights, v).transpose(1, 2).flatten(2))


@dataclass(frozen=True, slots=True)
class Mlp:
    gate_proj: Projection
    up_proj: Projection
    down_proj: Projection
    act_fn: ClassVar[nn.Module] = nn.SiLU()

    def __call__(self, x: Tensor) -> Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


@dataclass(frozen=True, slots=True)
class Layer:
    self_attn: Attention
    mlp: Mlp
    input_layernorm: Norm
    post_attention_layernorm: Norm

    def __call__(self, x: Tensor, rope: tuple[Tensor, Tensor]) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), rope)
        return x + self.mlp(self.post_attention_layernorm(x))


@dataclass(frozen=True, slots=True)
class Body:
    """layers: a list, which `fused.py` empties as it takes their weights."""

    embed_tokens: Projection
    layers: list[Layer]
    norm: Norm
    rotary_emb: Rotary


class LlamaForCausalLM:
    """Named like transformers' class, as its subclass is: `families` tells the family by it."""

    def __init__(self, config: LlamaConfig, body: Body, lm_head: Projection) -> None:
        self.config = config
        self.model = body
        self.lm_head = lm_head
        self.dtype = body.embed_tokens.weight.dtype

    def get_output_embeddings(self) -> Projection:
        return self.lm_head

    def parameters(self) -> Iterator[Tensor]:
        yield from _tensors([self.model, self.lm_head])

    def named_modules(self) -> Iterator[tuple[str, Projection]]:
        """The products, by the names of transformers' modules."""
        yield from _named("model", self.model)
        yield "lm_head", self.lm_head

    def in_float32(self) -> LlamaForCausalLM:
        """A copy."""
        return type(self)(self.config, _in_float32(self.model), _in_float32(self.lm_head))

    def __call__(self, tokens: Tensor) -> Tensor:
        """tokens: [n_sequences, n_tokens], whole. Returns [n_sequences, n_tokens, vocab]."""
        x = F.embedding(tokens, self.model.embed_tokens.weight)
        rope = self.model.rotary_emb(x, torch.arange(tokens.shape[1], device=x.device)[None])
        for layer in self.model.layers:
            x = layer(x, rope)
        return self.lm_head(self.model.norm(x))


class Qwen2ForCausalLM(LlamaForCausalLM):
    """A Llama whose Q, K and V have biases, if none of its layers has a sliding window."""


def _named(name: str, part: Any) -> Iterator[tuple[str, Projection]]:
    if isinstance(part, Projection):
        yield name, part
    elif isinstance(part, list):
        for index, inner in enumerate(part):
            yield from _named(f"{name}.{index}", inner)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _named(f"{name}.{field.name}", getattr(part, field.name))


def _tensors(part: Any) -> Iterator[Tensor]:
    if isinstance(part, Tensor):
        yield part
    for inner in _parts(part):
        yield from _tensors(inner)


def _parts(part: Any) -> list[Any]:
    if isinstance(part, list):
        return part
    return [getattr(part, field.name) for field in fields(part)] if is_dataclass(part) else []


def _in_float32(part: Any) -> Any:
    if isinstance(part, Tensor):
        return part.float()
    if isinstance(part, list):
        return [_in_float32(inner) for inner in part]
    if not is_dataclass(part) or isinstance(part, type):
        return part
    return replace(
        part, **{field.name: _in_float32(getattr(part, field.name)) for field in fields(part)}
    )


def _rotated(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """heads: [n_sequences, n_heads, n_tokens, head_dim]."""
    first, second = heads.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return heads * cos.unsqueeze(1) + turned * sin.unsqueeze(1)
