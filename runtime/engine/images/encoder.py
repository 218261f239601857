"""The vision encoder of a model of transformers, and its outputs for the last images.

Its outputs take the place of the embeddings of the tokens that stand for an image. They are kept by
the image's digest, up to a number of bytes, so that a repeated image is not encoded again, even if
its K and V were evicted.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgc.runtime.engine.images.image import Image
from sgc.runtime.engine.ints import Ints

MAX_KEPT_BYTES = 512 * 1024 * 1024


class Encoder:
    """model: of a class with `get_image_features`. max_bytes: of the outputs that are kept."""

    def __init__(self, model: Any, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._model = model
        self._table = model.get_input_embeddings()
        self._max_bytes = max_bytes
        self._kept: OrderedDict[bytes, Tensor] = OrderedDict()
        self.n_bytes = 0
        self._ids: list[Ints] = []
        self._outputs: list[Tensor] = []

    def forget_seen(self) -> None:
        """Forgets the current images: the next batch has none of them."""
        self._ids.clear()
        self._outputs.clear()

    def clear(self) -> None:
        """Drops all outputs."""
        self.forget_seen()
        self._kept.clear()
        self.n_bytes = 0

    def see(self, image: Image) -> bool:
        """Makes the image's outputs ready for `embeddings`; returns whether it had to be encoded.
        Raises ValueError if the encoder gives another number of outputs than there are tokens."""
        found = self._kept.get(image.digest)
        if found is not None:
            self._kept.move_to_end(image.digest)
        outputs = self._encoded(image) if found is None else found
        self._ids.append(image.ids)
        self._outputs.append(outputs)
        return found is None

    @torch.inference_mode()
    def embeddings(self, tokens: Tensor) -> Tensor:
        """[n_tokens, hidden]; tokens below zero are those of images."""
        is_image = tokens < 0
        found: Tensor = self._table(tokens.clamp(min=0))
        if bool(is_image.any()):
            ids = np.concatenate(self._ids)
            order = np.argsort(ids)
            wanted = tokens[is_image].numpy()
            at = order[np.searchsorted(ids, wanted, sorter=order)]
            assert (ids[at] == wanted).all(), "an image of the batch was not encoded"
            found[is_image] = torch.cat(self._outputs)[torch.from_numpy(at)]
        return found

    @torch.inference_mode()
    def _encoded(self, image: Image) -> Tensor:
        given = {name: torch.from_numpy(array.copy()) for name, array in image.arrays.items()}
        given["pixel_values"] = given["pixel_values"].to(self._model.dtype)
        output = self._model.get_image_features(**given, return_dict=True).pooler_output
        parts = output if isinstance(output, list | tuple) else [output]
        outputs = torch.cat([part.reshape(-1, part.shape[-1]) for part in parts])
        outputs = outputs.to(self._model.dtype)
        if len(outputs) != image.n_tokens:
            raise ValueError(
                f"the image is {image.n_tokens} tokens of the prompt, but {len(outputs)} outputs "
                "of the vision encoder"
            )
        self._keep(image.digest, outputs)
        return outputs

    def _keep(self, digest: bytes, outputs: Tensor) -> None:
        self._kept[digest] = outputs
        self.n_bytes += outputs.nbytes
        while self.n_bytes > self._max_bytes:
            self.n_bytes -= self._kept.popitem(last=False)[1].nbytes
