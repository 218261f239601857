"""How a family of decoders differs from the others: what a row of `table.py` says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from torch import Tensor

from sgc.kernels.layers import Norm
from sgc.runtime.engine.model.decoders.decoder import Experts, Mlp, Product
from sgc.runtime.engine.model.decoders.families import parts
from sgc.runtime.engine.model.decoders.families.modules import Structure


class QkNorm(Enum):
    """Whether Q and K are normed, and over what."""

    NONE = auto()
    EACH_HEAD = auto()
    ALL_HEADS = auto()


@dataclass(frozen=True, slots=True)
class Names:
    """Where a family keeps its parts: in the model, its body, a layer, its attention. "": in the
    layer itself; None: nowhere."""

    body: str = "model"
    table: str = "embed_tokens"
    layers: str = "layers"
    last_norm: str = "norm"
    attention: str = "self_attn"
    mlp: str = "mlp"
    norm: str | None = "input_layernorm"
    mlp_norm: str | None = "post_attention_layernorm"
    post_norm: str | None = None
    mlp_post_norm: str | None = None
    out: str = "o_proj"
    head_dim: str = "head_dim"


@dataclass(frozen=True, slots=True)
class Scales:
    """As `Decoder` has them."""

    table: float = 1.0
    logits: float = 1.0
    logit_cap: float | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """How a family's models are made and what they compute; the defaults are Llama's.

    ropes, positions: of the body. window, softcap: of an attention module. scales: of the model.
    residual_scale, is_parallel, is_usual: of a layer; one that is not usual is not known.
    rotates_part: whether some of a head's dimensions may stay as they are.
    """

    structure: Structure
    names: Names = Names()
    norm: Callable[[Any], Norm] = parts.rms_norm
    product: Callable[[Any], Product] = parts.linear
    qkv: Callable[[Any], Product] = parts.qkv_apart
    mlp: Callable[[Any], Mlp | Experts] = parts.gated_mlp
    qk_norm: QkNorm = QkNorm.NONE
    ropes: Callable[[Any], parts.RopeOf] = parts.rope
    rotates_part: bool = False
    positions: Callable[[Any], Tensor | None] = lambda body: None
    window: Callable[[Any], int | None] = lambda attention: None
    softcap: Callable[[Any], float | None] = lambda attention: None
    scales: Callable[[Any], Scales] = lambda model: Scales()
    residual_scale: Callable[[Any], float] = lambda layer: 1.0
    is_parallel: Callable[[Any], bool] = lambda layer: False
    is_usual: Callable[[Any], bool] = lambda layer: True
