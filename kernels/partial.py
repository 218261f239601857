"""Softmax attention in parts: each part's output comes with its log-sum-exp, by which outputs of
the same queries over different keys are merged (Flash-Decoding, cascade inference). Called by
`torch_attention.py`; knows neither pages nor rows.
"""

from __future__ import annotations

import torch
from torch import Tensor

Partial = tuple[Tensor, Tensor]
"""An output and its log-sum-exp, which has one dimension less and is float32."""

# torch's own CPU kernel, which `scaled_dot_product_attention` calls without returning the
# log-sum-exp. It is private, so there is a fallback.
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
    is_covered = q.device.type == "cpu" and softcap is None and q.shape[-1] == v.shape[-1]
    if _FLASH is None or not is_covered:
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
        after = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(after, -torch.inf)
    lse = scores.logsumexp(-1)
    return (scores - lse[..., None]).exp().to(v.dtype) @ v, lse


def merge(one: Partial, other: Partial) -> Partial:
    """The attention over the keys of both parts."""
    weight = torch.sigmoid(other[1] - one[1])[..., None].to(one[0].dtype)
    return torch.lerp(one[0], other[0], weight), torch.logaddexp(one[1], other[1])


def add_sinks(part: Partial, sinks: Tensor) -> Tensor:
    """The output with a sink in its softmax: a key without a value. sinks: broadcast to the lse."""
    share = torch.sigmoid(part[1] - sinks.float())
    return part[0] * share[..., None].to(part[0].dtype)
