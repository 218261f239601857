"""At load: does the model, run on flat batches over our pool, say what it says by itself?

Some architectures never look their attention up by name, keep other state than K and V, or
mask in ways that do not reach us. They would answer wrongly without any error, so each model
proves itself first, on two short sequences cut as the scheduler cuts them.
"""

from __future__ import annotations

import numpy as np
import torch

from sgc.runtime.engine.forward import Row, flatten
from sgc.runtime.engine.radix import Ints
from sgc.runtime.engine.runner import ATTENTION, KVPool, ModelRunner, UnsupportedModel

_N_TOKENS = 24
# Relative, at this quantile of the positions: rounding may send a token to another expert, so
# in half precision a few positions may differ.
_EXACT = (1e-4, 1.0)
_MAX_ERROR = {torch.float32: _EXACT, torch.bfloat16: (6e-2, 0.9), torch.float16: (1e-2, 0.9)}


def check_model(runner: ModelRunner) -> None:
    """Raises `UnsupportedModel`. Leaves a small pool behind, from which to tell sizes."""
    name = type(runner.model).__name__
    n = _length(runner)
    rng = np.random.default_rng(0)
    first = rng.integers(0, runner.vocab_size, n)
    second = np.concatenate([first[: n // 2], rng.integers(0, runner.vocab_size, n - n // 2)])
    try:
        flat = _run_flat(runner, first, second)
        plain = _run_plain(runner, first, second)
    except UnsupportedModel:
        raise
    except Exception as error:
        raise UnsupportedModel(
            f"{name} cannot be run with a registered attention function "
            f"({type(error).__name__}: {error})"
        ) from error
    _check_layers(runner, name)
    error_of = (flat - plain).norm(dim=-1) / (plain - plain.mean(-1, keepdim=True)).norm(dim=-1)
    limit, quantile = _MAX_ERROR.get(runner.model.dtype, _EXACT)
    worst = float(error_of.quantile(quantile))
    if not worst <= limit:
        raise UnsupportedModel(
            f"{name} is not supported: its logits over the engine's pool differ from its own by "
            f"{worst:.1e} (relative), so it must attend in a way that the engine does not know"
        )


def _length(runner: ModelRunner) -> int:
    """Long enough to leave a small sliding window."""
    window = getattr(runner.model.config.get_text_config(), "sliding_window", None) or 0
    n = _N_TOKENS if window > 128 else _N_TOKENS + window
    return min(n, runner.max_context)


def _check_layers(runner: ModelRunner, name: str) -> None:
    n_layers = int(runner.model.config.get_text_config().num_hidden_layers)
    silent = sorted(set(range(n_layers)) - runner.pool.layers.keys())
    if silent:
        raise UnsupportedModel(
            f"{name} is not supported: {len(silent)} of its {n_layers} layers do not attend "
            f"through transformers' attention interface (the first of them is layer {silent[0]})"
        )


def _run_flat(runner: ModelRunner, first: Ints, second: Ints) -> torch.Tensor:
    """In chunks, over scattered pages; the second takes the shared half from the first."""
    n, half = len(first), len(first) // 2
    runner.pool = KVPool(2 * n)
    pages = np.random.default_rng(1).permutation(2 * n)
    ours, theirs = pages[:n], np.concatenate([pages[:half], pages[n : 2 * n - half]])
    cut = half // 2 + 1
    steps = [
        [_row(first, 0, cut, ours)],
        [_row(first, cut, n - 1, ours)],
        [_row(second, half, n - 2, theirs), _row(first, n - 1, n, ours)],
        [_row(second, n - 2, n - 1, theirs)],
        [_row(second, n - 1, n, theirs)],
    ]
    outputs = [runner.logits(flatten(rows)) for rows in steps]
    in_order = [outputs[0], outputs[1], outputs[2][-1:], outputs[2][:-1], *outputs[3:]]
    return torch.cat(in_order).float()


def _row(tokens: Ints, start: int, end: int, pages: Ints) -> Row:
    return Row(tokens[start:end], start, pages[:end], np.arange(end - start))


@torch.inference_mode()
def _run_plain(runner: ModelRunner, first: Ints, second: Ints) -> torch.Tensor:
    model = runner.model
    model.set_attn_implementation("eager")
    try:
        batch = torch.from_numpy(np.stack([first, second]))
        logits = model(input_ids=batch, use_cache=False).logits
    finally:
        model.set_attn_implementation(ATTENTION)
    return torch.cat([logits[0], logits[1, len(first) // 2 :]]).float()
