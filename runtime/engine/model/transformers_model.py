"""Any causal LM of transformers over our pool: its own code computes everything but attention. It
looks up attention by name, and ours is registered there."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface

from sgc.kernels.interface import Heads
from sgc.runtime.engine.cache.kv_pool import Step
from sgc.runtime.engine.cache.states import LEAST_SLOTS
from sgc.runtime.engine.images.encoder import Encoder
from sgc.runtime.engine.images.families import FAMILIES
from sgc.runtime.engine.model.recurrent.mixers import Groups, mixers_of, run_apart
from sgc.runtime.engine.model.recurrent.states import StatePool

ATTENTION = "sgc_pool"

# A global, because some models drop keyword arguments on the way to their layers. One batch runs at
# a time in a process.
_step: Step | None = None


def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """The function that models call. query, key, value: [1, n_heads, n_tokens, head_dim]."""
    assert _step is not None, "the model was run outside of a batch"
    assert query.shape[0] == 1, "a flat batch has one row"
    q, k, v = (t[0].transpose(0, 1) for t in (query, key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    heads = Heads(float(scale), sliding_window or None, softcap, s_aux)
    layer: Any = module.layer_idx
    return _step.attend(int(layer), q, k, v, heads)[None], None


def _no_mask(*_: Any, **__: Any) -> None:
    """Models build no mask: the attention function knows which pages a row has."""


AttentionInterface.register(ATTENTION, _attend)
AttentionMaskInterface.register(ATTENTION, _no_mask)


def sees(model: Any) -> bool:
    """Whether the engine takes images for it."""
    return model.config.model_type in FAMILIES


def set_attention(model: Any, name: str) -> None:
    """The way that its language model attends; a vision encoder keeps its own."""
    model.set_attn_implementation({"text_config": name} if sees(model) else name)


class TransformersModel:
    """A model of transformers, switched to attend over a step's pool.

    The switch is stored in the model's configuration, which must not be shared with other models.
    states: of its recurrent layers, if it has any.
    """

    def __init__(self, model: Any) -> None:
        model.eval()
        set_attention(model, ATTENTION)
        self._model = model
        self.encoder = Encoder(model) if sees(model) else None
        self._body = model.base_model  # all but the head
        mixers = mixers_of(model)
        self.states = StatePool(LEAST_SLOTS) if mixers else None
        if mixers:
            run_apart(model, mixers, self._groups)

    def __call__(self, tokens: Tensor, positions: Tensor, wanted: Tensor, step: Step) -> Tensor:
        """tokens, positions: [n_tokens]; wanted: [n_logits] of them. Returns [n_logits, vocab]."""
        output = self._run(self._model, tokens, positions, step, logits_to_keep=wanted)
        logits: Tensor = output.logits[0]
        return logits

    def hidden(self, tokens: Tensor, positions: Tensor, wanted: Tensor, step: Step) -> Tensor:
        """What the head gets: [n_wanted, hidden]."""
        output = self._run(self._body, tokens, positions, step)
        found: Tensor = output.last_hidden_state[0]
        return found[wanted]

    def _groups(self) -> Groups | None:
        if _step is None:
            return None
        assert self.states is not None
        assert _step.groups is not None, "the batch does not say where its states are"
        return self.states, _step.groups

    def _run(self, part: Any, tokens: Tensor, positions: Tensor, step: Step, **more: Any) -> Any:
        global _step
        _step = step
        try:
            if self.encoder is None:
                given = {"input_ids": tokens[None]}
            else:
                given = {"inputs_embeds": self.encoder.embeddings(tokens)[None]}
            return part(**given, position_ids=positions.unsqueeze(-2), use_cache=False, **more)
        finally:
            _step = None
