"""Checks at load that a model sees images over our pool as it does itself: an image between texts,
with its tokens cut into chunks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgc.errors import LoadError
from sgc.runtime.engine.images.image import Image, Placed, positions_of, with_ids
from sgc.runtime.engine.images.reader import load_reader
from sgc.runtime.engine.ints import Ints
from sgc.runtime.engine.model.forward import Row, flatten
from sgc.runtime.engine.model.runner import ModelRunner, UnsupportedModel
from sgc.runtime.engine.model.self_check import EXACT, MAX_ERROR, eager, errors_of, unrunnable

_N_BEFORE, _N_AFTER = 7, 9


@dataclass(frozen=True, slots=True)
class OwnSight:
    """The model's own logits of the text after an image. tokens: with the image's ids."""

    image: Placed
    tokens: Ints
    logits: Tensor


def own_sight(model: Any, folder: Path) -> OwnSight:
    """What a model of transformers itself makes of an image."""
    model.eval()
    try:
        with eager(model):
            return _own_sight(model, folder)
    except LoadError:
        raise
    except Exception as error:
        raise unrunnable(type(model).__name__, error) from error


def check_sight(runner: ModelRunner, own: OwnSight) -> None:
    """Raises `UnsupportedModel`. Leaves a small pool in the runner."""
    formats = runner.pool.formats
    try:
        found = _sight_of(runner, own)
    except Exception as error:
        raise unrunnable(runner.name, error) from error
    runner.pool.formats = formats
    limit, quantile = MAX_ERROR.get(runner.dtype, EXACT)
    worst = float(errors_of(found, own.logits).quantile(quantile))
    if not worst <= limit:
        raise _refusal(runner.name, worst)


def _own_sight(model: Any, folder: Path) -> OwnSight:
    """model: with its eager attention. Raises `LoadError` for a processor that cannot be used."""
    reader = load_reader(folder)
    assert reader is not None
    image = reader.of_pixels(_pixels()).image
    vocab_size = int(model.get_output_embeddings().weight.shape[0])
    # Ids of images and videos are among the first or the last of a vocabulary.
    text = np.random.default_rng(2).integers(vocab_size // 4, vocab_size // 2, 16)
    marks = np.full(image.n_tokens, reader.token_id)
    tokens = np.concatenate([text[:_N_BEFORE], marks, text[_N_BEFORE:]])
    placed = Placed(image, ((_N_BEFORE, image.n_tokens),))
    logits = _own_logits(model, tokens, image, reader.token_id)
    return OwnSight(placed, with_ids(tokens, [placed]), logits[-_N_AFTER:].float())


@torch.inference_mode()
def _own_logits(model: Any, tokens: Ints, image: Image, token_id: int) -> Tensor:
    given = {name: torch.from_numpy(array.copy()) for name, array in image.arrays.items()}
    given["pixel_values"] = given["pixel_values"].to(model.dtype)
    ids = torch.from_numpy(tokens)[None]
    if image.grid is not None:
        given["mm_token_type_ids"] = (ids == token_id).int()
    logits: Tensor = model(input_ids=ids, use_cache=False, **given).logits[0]
    return logits


def _sight_of(runner: ModelRunner, own: OwnSight) -> Tensor:
    """The runner's logits of the same tokens, in two chunks. Its pool is a new one."""
    n, cut = len(own.tokens), _N_BEFORE + own.image.image.n_tokens // 2
    runner.pool = runner.new_pool(n)
    pages = np.random.default_rng(3).permutation(n)
    has_places = own.image.image.grid is not None
    places = positions_of(n, [own.image]) if has_places else None
    runner.forget_seen()
    runner.see(own.image.image)
    for start, end, wanted in ((0, cut, 0), (cut, n, _N_AFTER)):
        logits_at = np.arange(end - start - wanted, end - start)
        part = None if places is None else places[:, start:end]
        row = Row(own.tokens[start:end], start, pages[:end], logits_at, places=part)
        found = runner.logits(flatten([row]))
    runner.clear_seen()
    return torch.from_numpy(found)


def _refusal(name: str, error: float) -> UnsupportedModel:
    return UnsupportedModel(
        f"{name} is not supported: after an image its logits over the engine's pool differ from "
        f"its own by {error:.1e} (relative), so it must see in a way that the engine does not know"
    )


def _pixels() -> Any:
    import PIL.Image

    pixels = np.random.default_rng(1).integers(0, 256, (60, 90, 3), np.uint8)
    return PIL.Image.fromarray(pixels)
