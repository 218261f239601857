"""Runs a Hugging Face causal LM on the engine's flat batches: a `Forward`.

`ways.py` has the ways to compute a model; `loading.py` loads and checks a runner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sgc.runtime.engine.cache.kv_pool import KVPool, Step
from sgc.runtime.engine.images.encoder import Encoder
from sgc.runtime.engine.images.image import Image
from sgc.runtime.engine.model.forward import Accuracy, AsyncLogits, Drawn, FlatBatch, Logits
from sgc.runtime.engine.model.recurrent.states import StatePool


class UnsupportedModel(ValueError):
    """A model that would not be served faithfully."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What only our own kernels can do. deterministic: a row's logits do not depend on the rows
    beside it. weights, kv: "int8", or "auto", in the model's dtype."""

    deterministic: bool = False
    weights: str = "auto"
    kv: str = "auto"

    @property
    def in_eight_bits(self) -> bool:
        return "int8" in (self.weights, self.kv)

    @property
    def options(self) -> str:
        """The requested needs, for messages; "" without any."""
        asked = ["--deterministic"] if self.deterministic else []
        asked += ["--weights int8"] if self.weights == "int8" else []
        asked += ["--kv int8"] if self.kv == "int8" else []
        return " and ".join(asked)


Forwards = Callable[[Tensor, Tensor, Tensor, Step], Tensor]
"""(token_ids [n_tokens], positions [n_tokens], wanted [n_wanted], step) -> [n_wanted, width]"""


class Compute(Protocol):
    """A model's forward pass with torch."""

    def __call__(self, tokens: Tensor, positions: Tensor, wanted: Tensor, step: Step) -> Tensor:
        """Logits: [n_wanted, vocab]."""
        ...

    def hidden(self, tokens: Tensor, positions: Tensor, wanted: Tensor, step: Step) -> Tensor:
        """What the head gets: [n_wanted, hidden]."""
        ...


class Way(Protocol):
    """A way to compute a model. name: for messages."""

    name: str

    def logits(self, batch: FlatBatch, pool: KVPool) -> npt.NDArray[np.float32] | Logits:
        """Writes the new tokens' K and V to the pool, and returns [n_logits, vocab]. Notes the
        windows that its layers attend with in the pool."""
        ...

    def hidden(self, batch: FlatBatch, pool: KVPool) -> npt.NDArray[np.float32]:
        """As `logits`, but what the head gets: [n_logits, hidden]."""
        ...

    def gather_pages(self, n: int) -> bool:
        """Makes later steps quicker, if it can (`kernels/cpu/library.py`); returns whether more of
        it is left."""
        ...


class ModelRunner:
    """A model, the way it is computed, and a pool of `n_pages` tokens."""

    def __init__(
        self,
        model: Any,
        way: Way,
        n_pages: int,
        keeps_model: bool = False,
        needs: Needs = Needs(),
        device: torch.device | str = "cpu",
        device_name: str = "cpu",
        encoder: Encoder | None = None,
        states: StatePool | None = None,
    ) -> None:
        """model: the model behind the way. keeps_model: whether the runner keeps it. needs: what
        the way was asked for. device: where the pages are. states: of recurrent layers."""
        self.model: Any = model if keeps_model else None
        self.name = type(model).__name__
        self.config = model.config.get_text_config()
        self.dtype: torch.dtype = model.dtype
        self.device, self.device_name = device, device_name
        self.pool = self.new_pool(n_pages)
        head = model.get_output_embeddings()
        self.vocab_size, self.hidden_size = int(head.out_features), int(head.in_features)
        self.has_head = bool(getattr(model, "has_head", True))  # else it only makes embeddings
        self.max_context = max_context_of(self.config)
        self.way = way
        self.needs = needs
        self._encoder = encoder  # of images
        self.states = states
        self.accuracy: Accuracy | None = None  # where it was measured at load

    @property
    def pool_tokens(self) -> int:
        return self.pool.n_pages

    @property
    def is_ahead(self) -> bool:
        """Whether `run` returns before its logits are there: nothing is copied from a device."""
        return torch.device(self.device).type == "cuda"

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    @property
    def weights_name(self) -> str:
        return "int8" if self.needs.weights == "int8" else self.dtype_name

    @property
    def kv_name(self) -> str:
        return "int8" if self.needs.kv == "int8" else self.dtype_name

    def new_pool(self, n_pages: int) -> KVPool:
        return KVPool(n_pages, self.device)

    def run(self, batch: FlatBatch) -> npt.NDArray[np.float32] | Logits:
        return self.way.logits(batch, self.pool)

    def hidden(self, batch: FlatBatch) -> npt.NDArray[np.float32]:
        return self.way.hidden(batch, self.pool)

    @property
    def takes_images(self) -> bool:
        return self._encoder is not None

    @property
    def encoded_bytes(self) -> int:
        return 0 if self._encoder is None else self._encoder.n_bytes

    def see(self, image: Image) -> bool:
        assert self._encoder is not None
        return self._encoder.see(image)

    def forget_seen(self) -> None:
        if self._encoder is not None:
            self._encoder.forget_seen()

    def clear_seen(self) -> None:
        """Keeps nothing of any image."""
        if self._encoder is not None:
            self._encoder.clear()

    @property
    def takes_drawn(self) -> bool:
        """Whether there is a `run_after`: an `AsyncForward`'s."""
        return bool(getattr(self.way, "takes_drawn", False))

    def run_after(self, batch: FlatBatch, drawn: Drawn, rows: Sequence[int]) -> AsyncLogits:
        way: Any = self.way
        found: AsyncLogits = way.logits_after(batch, self.pool, drawn, rows)
        return found

    def logits(self, batch: FlatBatch) -> npt.NDArray[np.float32]:
        """All logits of a batch, on the host: [n_logits, vocab]."""
        found = self.run(batch)
        if isinstance(found, np.ndarray):
            return found
        return np.stack(list(found.rows(range(len(batch.logit_index)))))

    def gather_pages(self, n: int = 1) -> bool:
        return self.way.gather_pages(n)


def max_context_of(config: Any) -> int:
    """The longest context in which each position's K and V depend only on its prefix."""
    longest = int(getattr(config, "max_position_embeddings", None) or 32768)
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = [rope, *(value for value in rope.values() if isinstance(value, dict))]
    if any(kind.get("rope_type") in ("dynamic", "longrope") for kind in kinds):
        # Beyond it the frequencies depend on the longest sequence of the batch.
        original = [kind.get("original_max_position_embeddings") for kind in kinds]
        original.append(getattr(config, "original_max_position_embeddings", None))
        longest = min([longest, *(int(n) for n in original if n)])
    # Within one chunk, chunked attention is plain causal attention.
    chunk = getattr(config, "attention_chunk_size", None)
    return min(longest, int(chunk)) if chunk else longest
