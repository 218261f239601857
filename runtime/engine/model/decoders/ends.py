"""The two ends of a decoder with torch's operations: what goes into its layers, and the logits."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from sgc.runtime.engine.model.decoders.decoder import Decoder


def embedded(decoder: Decoder, tokens: Tensor, positions: Tensor) -> Tensor:
    """tokens, positions: [n_tokens]. Returns [n_tokens, hidden]."""
    x = F.embedding(tokens, decoder.table)
    if decoder.table_scale != 1.0:
        x = x * decoder.table_scale
    return x if decoder.positions is None else x + F.embedding(positions, decoder.positions)


def capped(decoder: Decoder, logits: Tensor) -> Tensor:
    """logits: [n_logits, vocab], of the head."""
    if decoder.logit_scale != 1.0:
        logits = logits * decoder.logit_scale
    cap = decoder.logit_cap
    return logits if cap is None else cap * torch.tanh(logits / cap)
