"""Computes a model on a device. A step's arrays are sent there in one copy; logits stay there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sgc.kernels.interface import PagedAttention, Ragged
from sgc.kernels.parts import tensor_of
from sgc.runtime.engine.cache.kv_pool import KVPool, Step
from sgc.runtime.engine.ints import Ints
from sgc.runtime.engine.model.device.graphs import Capture, DecodeGraphs, pinned
from sgc.runtime.engine.model.device.places import Place
from sgc.runtime.engine.model.forward import AsyncLogits, FlatBatch, Logits
from sgc.runtime.engine.model.runner import Compute, Forwards

if TYPE_CHECKING:  # Triton is imported only where it is used
    from sgc.runtime.engine.model.device.logits import DrawnTokens


class DeviceWay:
    """capture: captures graphs; None for none, as where the computation waits for the host.

    together: the context in which each batch runs. It is set once the model is loaded, which all
    processes of a group do in the same way.
    """

    together: Callable[[FlatBatch], AbstractContextManager[Any]] = nullcontext

    def __init__(self, compute: Compute, place: Place, capture: Capture | None = None) -> None:
        self.name = f"{place.attention} on {place.device}"
        self.place = place
        self.attention: PagedAttention = place.paged_attention()
        self._compute = compute
        self._capture = capture
        self._graphs: DecodeGraphs | None = None
        self._queued: Any = None  # an event recorded before the last step

    @torch.inference_mode()
    def logits(self, batch: FlatBatch, pool: KVPool) -> npt.NDArray[np.float32] | Logits:
        with self.together(batch):
            return self.place.logits(self._logits(batch, pool, None))

    @torch.inference_mode()
    def hidden(self, batch: FlatBatch, pool: KVPool) -> npt.NDArray[np.float32]:
        with self.together(batch):  # the group's other processes compute logits that nobody reads
            self._keep_close()
            found = self._eager(self._compute.hidden, batch, pool, None)
            wide: npt.NDArray[np.float32] = found.float().cpu().numpy()
            return wide

    @property
    def takes_drawn(self) -> bool:
        """Whether a batch's tokens may be on the device: only there, so that no other process has
        them."""
        return self.place.attention != "torch" and self.place.group.is_alone

    @torch.inference_mode()
    def logits_after(
        self, batch: FlatBatch, pool: KVPool, drawn: DrawnTokens, rows: Sequence[int]
    ) -> AsyncLogits:
        """See `AsyncForward.run_after`."""
        tokens = drawn.tokens.clamp(min=0)  # -1 where none could be drawn, which would end the GPU
        if len(rows) < len(tokens):
            (at,) = self._sent(np.array(rows, np.int64))
            tokens = tokens[at]
        logits: Any = self.place.logits(self._logits(batch, pool, tokens))
        found: AsyncLogits = logits
        return found

    def _logits(self, batch: FlatBatch, pool: KVPool, known: Tensor | None) -> Tensor:
        """known: the batch's tokens, if they are on the device."""
        self._keep_close()
        found = None if self._graphs is None else self._graphs.run(batch, known)
        return self._eager(self._compute, batch, pool, known) if found is None else found

    def _keep_close(self) -> None:
        """Lets at most two steps that draw nothing, such as a long prompt's, be under way: a new
        request would wait for all of them. After an error on the GPU itself nothing can be computed
        there any more; the process then ends, which the server notices."""
        if self.place.is_gpu:
            try:
                if self._queued is not None:
                    self._queued.synchronize()
            except RuntimeError as error:
                raise SystemExit(f"{self.place.device} computes no more: {error}") from error
            self._queued = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._queued.record()

    def _eager(
        self, compute: Forwards, batch: FlatBatch, pool: KVPool, known: Tensor | None
    ) -> Tensor:
        tokens, positions, slots, wanted = self._sent(
            batch.token_ids, batch.positions, batch.slots, batch.logit_index
        )
        tokens = tokens if known is None else known
        plan = self.attention.plan(ragged_of(batch))
        return compute(tokens, positions, wanted, Step(self.attention, plan, slots, pool))

    def _sent(self, *arrays: Ints) -> Sequence[Tensor]:
        """The arrays on the device, by one copy."""
        together = pinned(tensor_of(np.concatenate(arrays)), self.place.device)
        sent = together.to(self.place.device, non_blocking=True)
        return torch.split(sent, [len(array) for array in arrays])

    def gather_pages(self, n: int) -> bool:
        return False

    @torch.inference_mode()
    def capture(self, pool: KVPool, max_rows: int, max_context: int) -> None:
        """Captures the graphs of steps in which up to `max_rows` rows decode, over this pool. They
        hold its addresses, so it must stay."""
        if self._capture is not None:
            attention: Any = self.attention
            self._graphs = DecodeGraphs(
                self._compute, attention, pool, self._capture, max_rows, max_context
            )


def ragged_of(batch: FlatBatch) -> Ragged:
    return Ragged(tensor_of(batch.row_starts), tensor_of(batch.pages), tensor_of(batch.page_starts))
