"""Checks at load that a model's logits on flat batches over our pool equal its own.

Some architectures never look their attention up by name, keep other state than K and V, or mask in
ways that our attention does not see. Their answers would be wrong without any error. So each model
is checked first, on two short sequences that run as the scheduler runs them: in chunks, with a
shared prefix that both attend to, and decoding in one batch. They are long enough for every path of
our own kernels, except the path for contexts so long that they are split.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgc.runtime.engine.cache.states import EMPTY, FIRST, SCRAP
from sgc.runtime.engine.ints import Ints
from sgc.runtime.engine.model.forward import Row, flatten
from sgc.runtime.engine.model.plain_llama import LlamaForCausalLM as PlainLlama
from sgc.runtime.engine.model.runner import ModelRunner, UnsupportedModel, max_context_of

# So many reach several tiles of rows and of keys, and trunks that rows share. More of a large model
# would take seconds.
_N_TOKENS, _N_TOKENS_OF_LARGE = 112, 80
_LARGE = 2 * 10**8
# Relative, at this quantile of the positions: rounding may send a token to another expert, so
# in half precision a few positions may differ.
EXACT = (1e-4, 1.0)
# Eight bits err about as much as bfloat16 does; a wrong page or mask gives an error of about 1.
_EIGHT_BITS = (0.3, 0.75)
MAX_ERROR = {torch.float32: EXACT, torch.bfloat16: (6e-2, 0.9), torch.float16: (1e-2, 0.9)}
# In half precision a model that is not large is held to its own error, which is measured against
# float32 on its first tokens: two that err as much differ by up to twice that.
_N_MEASURED = 24
_TIMES_OWN = 3.0
# Rounding within chunks of recurrent layers grows at some positions: the largest error, and that
# at the quantile. A wrong state gives errors of about 1.
_RECURRENT_MOST, _RECURRENT = 0.1, (1e-3, 0.9)
_N_TWINS = 3  # rows that share all pages but their last
# Slots of recurrent layers' states: of each sequence, after the half that they share, and before
# the last token of each.
_OURS, _THEIRS, _HALF, _OUR_LAST, _THEIR_LAST = range(FIRST, FIRST + 5)
_N_SLOTS = 5


@dataclass(frozen=True, slots=True)
class OwnAnswers:
    """The model's own logits. first, second: [n] tokens with an equal first half; logits: [n + n //
    2, vocab], of all tokens of the first, then of the second's second half. error: what half
    precision makes of them, relative; None: not measured."""

    first: Ints
    second: Ints
    logits: Tensor
    error: float | None = None


def own_answers(model: Any) -> OwnAnswers:
    n_weights = sum(weight.numel() for weight in model.parameters())
    most = _N_TOKENS if n_weights <= _LARGE else _N_TOKENS_OF_LARGE
    n = _length(model.config.get_text_config(), most)
    vocab_size = int(model.get_output_embeddings().weight.shape[0])
    rng = np.random.default_rng(0)
    first = rng.integers(0, vocab_size, n)
    second = np.concatenate([first[: n // 2], rng.integers(0, vocab_size, n - n // 2)])
    batch = torch.from_numpy(np.stack([first, second]))
    logits = own_logits(model, batch)
    right = torch.cat([logits[0], logits[1, n // 2 :]]).float()
    if not bool(right.isfinite().all()):
        dtype = str(model.dtype).removeprefix("torch.")
        raise UnsupportedModel(
            f"{type(model).__name__} is not supported: its own logits are NaN or infinite in "
            f"{dtype}, so its weights are damaged, or too large for {dtype}"
        )
    is_measured = model.dtype in (torch.bfloat16, torch.float16) and n_weights <= _LARGE
    error = _own_error(model, batch[:1, :_N_MEASURED], right) if is_measured else None
    return OwnAnswers(first, second, right, error)


@torch.inference_mode()
def _own_error(model: Any, tokens: Tensor, logits: Tensor) -> float:
    if isinstance(model, PlainLlama):
        wide: Any = model.in_float32()
    else:
        wide = copy.deepcopy(model).float()
    exact = own_logits(wide, tokens)[0]
    quantile = MAX_ERROR[model.dtype][1]
    return float(errors_of(logits[: len(exact)], exact).quantile(quantile))


def errors_of(logits: Tensor, right: Tensor) -> Tensor:
    """Of each position, relative."""
    centred = right - right.mean(-1, keepdim=True)
    errors: Tensor = (logits - right).norm(dim=-1) / centred.norm(dim=-1)
    return errors


@torch.inference_mode()
def own_logits(model: Any, batch: Tensor) -> Tensor:
    """Runs a plain model, or one of transformers with its eager attention, whose setting it
    restores. batch: [n_rows, n]. Returns [n_rows, n, vocab], on the CPU."""
    batch = batch.to(next(iter(model.parameters())).device)
    if isinstance(model, PlainLlama):
        logits: Tensor = model(batch)
        return logits.cpu()
    return _eager_logits(model, batch).cpu()


def _eager_logits(model: Any, batch: Tensor) -> Tensor:
    model.eval()
    try:
        with eager(model):
            logits: Tensor = model(input_ids=batch, use_cache=False).logits
    except Exception as error:
        raise unrunnable(type(model).__name__, error) from error
    return logits


@contextlib.contextmanager
def eager(model: Any) -> Iterator[None]:
    """Within the block, a model of transformers attends by itself."""
    from sgc.runtime.engine.model.transformers_model import set_attention

    before = model.config.get_text_config()._attn_implementation
    try:
        set_attention(model, "eager")
        yield
    finally:
        set_attention(model, before)


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
        raise unrunnable(runner.name, error) from error
    _check_layers(runner)
    window = _active_window(runner.config)
    if window is not None and window not in runner.pool.windows:
        # Only its mask applies the window, and we use no masks. Up to the window there is no
        # difference.
        runner.max_context = min(runner.max_context, window)
    limit, quantile = MAX_ERROR.get(runner.dtype, EXACT)
    most = np.inf
    if runner.states is not None and limit == EXACT[0]:
        most, (limit, quantile) = _RECURRENT_MOST, _RECURRENT
    if own.error is not None:
        limit = _TIMES_OWN * own.error
    if runner.needs.in_eight_bits:
        limit, quantile = _EIGHT_BITS
    n = len(own.first)
    again = own.logits[[n - 1] * _N_TWINS + [-1] * (_N_TWINS - 1)]  # what twins run once more
    errors = errors_of(flat, torch.cat([own.logits, again]))
    worst = float(errors.quantile(quantile))
    if not (worst <= limit and float(errors.max()) <= most):
        raise UnsupportedModel(
            f"{runner.name} is not supported: its logits over the engine's pool differ from its "
            f"own by {worst:.1e} (relative), so it must attend in a way that the engine does not "
            "know"
        )


def unrunnable(name: str, error: Exception) -> UnsupportedModel:
    return UnsupportedModel(
        f"{name} cannot be run with a registered attention function "
        f"({type(error).__name__}: {error})"
    )


def _length(config: Any, most: int) -> int:
    """A length that exceeds a small sliding window."""
    window = getattr(config, "sliding_window", None) or 0
    return min(most if window > 128 else max(most, window + 24), max_context_of(config))


def _check_layers(runner: ModelRunner) -> None:
    n_layers = int(runner.config.num_hidden_layers)
    known = set(runner.pool.layers)
    if runner.states is not None:
        known |= runner.states.layers | _without_any(runner.config)
    silent = sorted(set(range(n_layers)) - known)
    if silent:
        raise UnsupportedModel(
            f"{runner.name} is not supported: {len(silent)} of its {n_layers} layers do not attend "
            f"through transformers' attention interface (the first of them is layer {silent[0]}); "
            "what they keep in place of K and V is not cached here"
        )


def _without_any(config: Any) -> set[int]:
    """The layers of a hybrid model that attend to nothing and keep no state."""
    kinds = getattr(config, "layer_types", None) or []
    return {layer for layer, kind in enumerate(kinds) if kind in ("moe", "mlp")}


def _run_flat(runner: ModelRunner, first: Ints, second: Ints) -> Tensor:
    """Runs both in chunks, over scattered pages; the second shares the first half's pages. The last
    token of each is run by several rows at once, which share all pages before it."""
    n, half = len(first), len(first) // 2
    if runner.states is not None:
        runner.states.resize(_N_SLOTS)
    runner.pool = runner.new_pool(2 * n + 2 * _N_TWINS)
    pages = np.random.default_rng(1).permutation(2 * n + 2 * _N_TWINS)
    ours, theirs = pages[:n], np.concatenate([pages[:half], pages[n : 2 * n - half]])
    cut = half // 2 + 1
    steps = [
        [_row(first, 0, cut, ours, EMPTY, _OURS)],
        [_row(first, cut, half, ours, _OURS, _HALF), _row(first, half, n - 2, ours, _HALF, _OURS)],
        [
            _row(second, half, n - 2, theirs, _HALF, _THEIRS),
            _row(first, n - 2, n - 1, ours, _OURS, _OUR_LAST),
        ],
        [
            _row(first, n - 1, n, ours, _OUR_LAST, _OURS),
            _row(second, n - 2, n - 1, theirs, _THEIRS, _THEIR_LAST),
        ],
        _twins(first, ours, pages[2 * n : 2 * n + _N_TWINS], _OUR_LAST)
        + _twins(second, theirs, pages[2 * n + _N_TWINS :], _THEIR_LAST),
    ]
    a, b, c, d, e = (torch.from_numpy(runner.logits(flatten(rows))) for rows in steps)
    of_second = e[_N_TWINS:]
    once = torch.cat([a, b, c[-1:], d[:1], c[:-1], d[1:], of_second[:1]])
    return torch.cat([once, e[:_N_TWINS], of_second[1:]])


def _twins(tokens: Ints, pages: Ints, last: Ints, reads: int) -> list[Row]:
    """Rows of the last token, each with a last page of its own."""
    n = len(tokens)
    before = pages[: n - 1]
    return [_row(tokens, n - 1, n, np.append(before, page), reads, SCRAP) for page in last]


def _row(tokens: Ints, start: int, end: int, pages: Ints, reads: int, writes: int) -> Row:
    at = np.arange(end - start)
    return Row(tokens[start:end], start, pages[:end], at, reads=reads, writes=writes)
