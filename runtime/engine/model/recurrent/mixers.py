"""Recurrent layers of transformers' models (short convolutions, Mamba, gated delta nets), run on
flat batches: each row separately, with its own states, by the layer's own code and cache classes.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers import cache_utils

from sgc.runtime.engine.model.recurrent.states import Group, StatePool
from sgc.runtime.engine.model.runner import UnsupportedModel

_CACHES = ("cache_params", "past_key_values")  # what layers call it
_N_PROBED = 8
_SAME = 1e-4  # relative, in float32
Groups = tuple[StatePool, list[Group]]


def mixers_of(model: Any) -> list[Any]:
    """Its recurrent layers: modules that keep the last inputs of a convolution in a cache."""
    return [
        module
        for module in model.modules()
        if hasattr(module, "layer_idx")
        and hasattr(module, "conv_kernel_size")
        and _cache_argument(module) is not None
    ]


def run_apart(model: Any, mixers: list[Any], now: Callable[[], Groups | None]) -> None:
    """Makes the layers run each row of a batch by itself. now: the states of the batch that runs,
    and the groups of its rows; None: the model runs by itself."""
    if not hasattr(cache_utils, "LinearAttentionLayer"):
        raise UnsupportedModel(
            f"{type(model).__name__} has recurrent layers, whose states this version of "
            "transformers does not let us keep: pip install 'transformers>=5.23'"
        )
    resume = {kind: _resumes(model, each) for kind, each in {type(m): m for m in mixers}.items()}
    for mixer in mixers:
        run = _Apart(mixer, model.config.get_text_config(), resume[type(mixer)])
        mixer.forward = _switched(mixer.forward, run, now)


def _switched(own: Any, run: _Apart, now: Callable[[], Groups | None]) -> Any:
    def forward(hidden_states: Tensor, *given: Any, **more: Any) -> Any:
        step = now()
        if step is None:
            return own(hidden_states, *given, **more)
        return run(hidden_states, *step)

    return forward


class _Apart:
    """resumes: whether the layer's code can continue a state with several tokens at once; else it
    gets tokens one by one."""

    def __init__(self, mixer: Any, config: Any, resumes: bool) -> None:
        self._own = mixer.forward
        self._argument = _cache_argument(mixer) or ""
        self._layer = int(mixer.layer_idx)
        self._n_layers = self._layer + 1
        self._n_states = int(getattr(config, "number_of_conv_states", 1))
        self._resumes = resumes

    def __call__(self, hidden: Tensor, pool: StatePool, groups: list[Group]) -> Tensor:
        """hidden: [1, n_tokens, width]."""
        out = torch.empty_like(hidden)
        for group in groups:
            cache = self.cache(None if group.is_new else self._read(pool, group))
            out[0, group.tokens] = self.run(hidden[0, group.tokens], cache, group.is_new)
            for key, state in self.states(cache):
                pool.write(key, group, state)
        return out

    def run(self, x: Tensor, cache: Any, is_new: bool) -> Tensor:
        """x: [n_rows, n, width]"""
        if is_new or self._resumes or x.shape[1] == 1:
            return self._checked(self._own(x, **{self._argument: cache}))
        steps = [self._own(x[:, t : t + 1], **{self._argument: cache}) for t in range(x.shape[1])]
        return torch.cat(steps, 1)

    def cache(self, states: dict[tuple[str, int], Tensor] | None) -> Any:
        """A cache of transformers' in which only this layer is used."""
        layer: Any = cache_utils.LinearAttentionLayer(number_of_states=self._n_states)
        for (kind, index), state in (states or {}).items():
            getattr(layer, f"{kind}_states")[index] = state
            getattr(layer, f"is_{kind}_states_initialized")[index] = True
            layer.has_previous_state[index] = True
            if kind == "conv":
                layer.conv_kernel_size[index] = state.shape[-1]
                layer.dtype, layer.device = state.dtype, state.device
        return cache_utils.Cache(layers=[layer] * self._n_layers)

    def states(self, cache: Any) -> Iterator[tuple[tuple[int, str, int], Tensor]]:
        layer = cache.layers[self._layer]
        for kind in ("conv", "recurrent"):
            for index, state in getattr(layer, f"{kind}_states").items():
                if state is not None:
                    yield (self._layer, kind, index), state

    def _read(self, pool: StatePool, group: Group) -> dict[tuple[str, int], Tensor]:
        return {key[1:]: pool.read(key, group) for key, _ in pool.of(self._layer)}

    def _checked(self, out: Any) -> Tensor:
        if not isinstance(out, Tensor):
            raise UnsupportedModel(f"layer {self._layer} gives {type(out).__name__}, not a tensor")
        return out


def _cache_argument(module: nn.Module) -> str | None:
    names = inspect.signature(type(module).forward).parameters
    return next((name for name in _CACHES if name in names), None)


@torch.inference_mode()
def _resumes(model: Any, mixer: Any) -> bool:
    """Whether running several tokens after a state gives the same results as one run of all tokens.
    Some layers' code starts several tokens with an empty state, whatever state it gets."""
    config = model.config.get_text_config()
    ours = _Apart(copy.deepcopy(mixer).float(), config, resumes=True)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, _N_PROBED, int(config.hidden_size), generator=generator)
    whole, parts, half = ours.cache(None), ours.cache(None), _N_PROBED // 2
    right = ours.run(x, whole, is_new=True)
    first = ours.run(x[:, :half], parts, is_new=True)
    found = torch.cat([first, ours.run(x[:, half:], parts, is_new=False)], 1)
    pairs = [(found, right)]
    pairs += [(a, b) for (_, a), (_, b) in zip(ours.states(parts), ours.states(whole), strict=True)]
    return all(float((a - b).norm()) <= _SAME * float(b.norm()) for a, b in pairs)
