"""Softmax attention in parts: each part's output comes with the log of its softmax's sum, by
which outputs over different keys of the same queries are merged into one (Flash-Decoding,
cascade inference). Called by `torch_cpu.py`; knows neither pages nor rows.
"""

from __future__ import annotations

import torch
from torch import Tensor

Partial = tuple[Tensor, Tensor]
"""An output and its log-sum-exp: one dimension less, float32."""

# torch's own CPU kernel, which `scaled_dot_product_attention` calls without giving the
# log-sum-exp away. Private, so nothing here depends on its being there.
_FLASH = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)


def attend_part(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float,
    mask: Tensor | None = None,
    is_causal: bool = False,
    softcap: float | None = None,
) -> Partial:
    """q: [b, h, n, head_dim]; k: [b, h, c, head_dim]; v: [b, h, c, v_head_dim]; mask: what is
    added to the scores, broadcast to [b, h, n, c]. Each query sees at least one key.

    Returns [b, h, n, v_head_dim] and [b, h, n]. is_causal: query i sees keys 0 … i.
    """
    if _FLASH is None or softcap is not None or q.shape[-1] != v.shape[-1]:
        return _attend_plainly(q, k, v, scale, mask, is_causal, softcap)
    out, lse = _FLASH(q, k, v, 0.0, is_causal, attn_mask=mask, scale=scale)
    return out, lse


def _attend_plainly(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    mask: Tensor | None,
    is_causal: bool,
    softcap: float | None,
) -> Partial:
    scores = (q @ k.transpose(-1, -2)).float() * scale
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if mask is not None:
        scores = scores + mask
    if is_causal:
        after = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(after, -torch.inf)
    lse = scores.logsumexp(-1)
    return (scores - lse[..., None]).exp().to(v.dtype) @ v, lse


def merge(one: Partial, other: Partial) -> Partial:
    """The attention over both parts' keys."""
    weight = torch.sigmoid(other[1] - one[1])[..., None].to(one[0].dtype)
    return torch.lerp(one[0], other[0], weight), torch.logaddexp(one[1], other[1])


def add_sinks(part: Partial, sinks: Tensor) -> Tensor:
    """The output, once a key without a value has its share. sinks: broadcast to the lse."""
    share = torch.sigmoid(part[1] - sinks.float())
    return part[0] * share[..., None].to(part[0].dtype)
