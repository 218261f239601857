"""Checks at load that a model's logits on flat batches over our pool equal its own.

Some architectures never look their attention up by name, keep other state than K and V, or mask in
ways that our attention does not see. Their answers would be wrong without any error. So each model
is checked first, on two short sequences that run as the scheduler runs them: in chunks, with a
shared prefix that both attend to, and decoding in one batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgc.runtime.engine.cache.kv_pool import KVPool
from sgc.runtime.engine.ints import Ints
from sgc.runtime.engine.model.forward import Row, flatten
from sgc.runtime.engine.model.plain_llama import LlamaForCausalLM as PlainLlama
from sgc.runtime.engine.model.runner import ModelRunner, UnsupportedModel, max_context_of

_N_TOKENS = 24
# Relative, at this quantile of the positions: rounding may send a token to another expert, so
# in half precision a few positions may differ.
_EXACT = (1e-4, 1.0)
# Eight bits err about as much as bfloat16 does; a wrong page or mask gives an error of about 1.
_EIGHT_BITS = (0.3, 0.75)
_MAX_ERROR = {torch.float32: _EXACT, torch.bfloat16: (6e-2, 0.9), torch.float16: (1e-2, 0.9)}


@dataclass(frozen=True, slots=True)
class OwnAnswers:
    """The model's own logits. first, second: [n] tokens with an equal first half; logits: [n + n //
    2, vocab], of all tokens of the first, then of the second's second half."""

    first: Ints
    second: Ints
    logits: Tensor


def own_answers(model: Any) -> OwnAnswers:
    n = _length(model.config.get_text_config())
    vocab_size = int(model.get_output_embeddings().weight.shape[0])
    rng = np.random.default_rng(0)
    first = rng.integers(0, vocab_size, n)
    second = np.concatenate([first[: n // 2], rng.integers(0, vocab_size, n - n // 2)])
    batch = torch.from_numpy(np.stack([first, second]))
    logits = own_logits(model, batch)
    return OwnAnswers(first, second, torch.cat([logits[0], logits[1, n // 2 :]]).float())


@torch.inference_mode()
def own_logits(model: Any, batch: Tensor) -> Tensor:
    """Runs a plain model, or one of transformers with its eager attention, whose setting it
    restores. batch: [n_rows, n]. Returns [n_rows, n, vocab]."""
    if isinstance(model, PlainLlama):
        logits: Tensor = model(batch)
        return logits
    return _eager_logits(model, batch)


def _eager_logits(model: Any, batch: Tensor) -> Tensor:
    model.eval()
    before = model.config._attn_implementation
    try:
        model.set_attn_implementation("eager")
        logits: Tensor = model(input_ids=batch, use_cache=False).logits
    except Exception as error:
        raise _unrunnable(type(model).__name__, error) from error
    finally:
        model.set_attn_implementation(before)
    return logits


def _active_window(config: Any) -> int | None:
    """The sliding window that some of the model's layers have."""
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    if not window or not getattr(config, "use_sliding_window", True):
        return None
    return int(window) if kinds is None or "sliding_attention" in kinds else None


def check_model(runner: ModelRunner, own: OwnAnswers) -> None:
    """Raises `UnsupportedModel`. Leaves a small pool in the runner, to tell page sizes."""
    try:
        flat = _run_flat(runner, own.first, own.second)
    except Exception as error:
        raise _unrunnable(runner.name, error) from error
    _check_layers(runner)
    window = _active_window(runner.config)
    if window is not None and window not in runner.pool.windows:
        # Only its mask applies the window, and we use no masks. Up to the window there is no
        # difference.
        runner.max_context = min(runner.max_context, window)
    centred = own.logits - own.logits.mean(-1, keepdim=True)
    error_of = (flat - own.logits).norm(dim=-1) / centred.norm(dim=-1)
    limit, quantile = _MAX_ERROR.get(runner.dtype, _EXACT)
    if runner.needs.in_eight_bits:
        limit, quantile = _EIGHT_BITS
    worst = float(error_of.quantile(quantile))
    if not worst <= limit:
        raise UnsupportedModel(
            f"{runner.name} is not supported: its logits over the engine's pool differ from its "
            f"own by {worst:.1e} (relative), so it must attend in a way that the engine does not "
            "know"
        )


def _unrunnable(name: str, error: Exception) -> UnsupportedModel:
    return UnsupportedModel(
        f"{name} cannot be run with a registered attention function "
        f"({type(error).__name__}: {error})"
    )


def _length(config: Any) -> int:
    """A length that exceeds a small sliding window."""
    window = getattr(config, "sliding_window", None) or 0
    n = _N_TOKENS if window > 128 else _N_TOKENS + window
    return min(n, max_context_of(config))


def _check_layers(runner: ModelRunner) -> None:
    n_layers = int(runner.config.num_hidden_layers)
    silent = sorted(set(range(n_layers)) - runner.pool.layers.keys())
    if silent:
        raise UnsupportedModel(
            f"{runner.name} is not supported: {len(silent)} of its {n_layers} layers do not attend "
            f"through transformers' attention interface (the first of them is layer {silent[0]})"
        )


def _run_flat(runner: ModelRunner, first: Ints, second: Ints) -> Tensor:
    """Runs both in chunks, over scattered pages; the second shares the first half's pages."""
    n, half = len(first), len(first) // 2
    runner.pool = KVPool(2 * n)
    pages = np.random.default_rng(1).permutation(2 * n)
    ours, theirs = pages[:n], np.concatenate([pages[:half], pages[n : 2 * n - half]])
    cut = half // 2 + 1
    steps = [
        [_row(first, 0, cut, ours)],
        [_row(first, cut, n - 2, ours)],
        [_row(second, half, n - 2, theirs), _row(first, n - 2, n - 1, ours)],
        [_row(first, n - 1, n, ours), _row(second, n - 2, n - 1, theirs)],
        [_row(second, n - 1, n, theirs)],
    ]
    a, b, c, d, e = (torch.from_numpy(runner.run(flatten(rows))) for rows in steps)
    return torch.cat([a, b, c[-1:], d[:1], c[:-1], d[1:], e])


def _row(tokens: Ints, start: int, end: int, pages: Ints) -> Row:
    return Row(tokens[start:end], start, pages[:end], np.arange(end - start))
