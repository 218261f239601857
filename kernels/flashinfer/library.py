"""FlashInfer's library as it is used here: the kinds of plans, and the objects that plan and run
calls. Importing this module does not import FlashInfer."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from sgc.kernels.flashinfer.inputs import PAGE_SIZE, Rows
from sgc.kernels.interface import Heads

DTYPES = (torch.float16, torch.bfloat16)
HEAD_DIMS = (64, 128, 256)


class Kind(NamedTuple):
    """What a plan and a compiled module depend on, besides the batch."""

    n_heads: int
    n_kv_heads: int
    head_dim: int
    dtype: torch.dtype
    scale: float
    window: int | None
    softcap: float | None


class Planned(Protocol):
    """FlashInfer's `BatchPrefillWithPagedKVCacheWrapper`, as far as it is used here."""

    def plan(self, *arrays: Tensor, **options: Any) -> None: ...
    def run(self, q: Tensor, paged_kv_cache: tuple[Tensor, Tensor], **options: Any) -> Any: ...


class Library(Protocol):
    """FlashInfer, as far as it is used here. Log-sum-exps are to the base of 2."""

    def planned(self, workspace: Tensor, buffers: Rows | None) -> Planned:
        """buffers: memory on the device for a graph's batch arrays; None without a graph."""
        ...

    def merge(self, one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> Tensor: ...


class _Copying:
    """A wrapper whose plans are copied to the device from memory that the next plan overwrites. So
    it waits for the copy, which matters when the device lags a step behind the host."""

    def __init__(self, wrapper: Any) -> None:
        self._wrapper = wrapper
        self._copied: Any = None

    def plan(self, *arrays: Tensor, **options: Any) -> None:
        if self._copied is not None:
            self._copied.synchronize()
        self._wrapper.plan(*arrays, **options)
        self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._copied.record()

    def run(self, q: Tensor, paged_kv_cache: tuple[Tensor, Tensor], **options: Any) -> Any:
        return self._wrapper.run(q, paged_kv_cache, **options)


class FlashInfer:
    """The library itself. backend: "fa2" compiles in a fraction of the time that "fa3" takes."""

    def __init__(self, backend: str = "fa2") -> None:
        self._backend = backend

    def planned(self, workspace: Tensor, buffers: Rows | None) -> Planned:
        from flashinfer import BatchPrefillWithPagedKVCacheWrapper

        held: dict[str, Any] = {}
        if buffers is not None:
            held = {
                "use_cuda_graph": True,
                "qo_indptr_buf": buffers.q_starts,
                "paged_kv_indptr_buf": buffers.page_starts,
                "paged_kv_indices_buf": buffers.pages,
                "paged_kv_last_page_len_buf": buffers.last_page_tokens,
            }
        wrapper = BatchPrefillWithPagedKVCacheWrapper(
            workspace, "NHD", backend=self._backend, **held
        )
        return _Copying(wrapper)

    def merge(self, one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> Tensor:
        from flashinfer import merge_state

        out: Tensor = merge_state(*one, *other)[0]
        return out


def plan_rows(planned: Planned, kind: Kind, rows: Rows, pages: Tensor) -> None:
    """pages: the rows' pages, on the device, since the wrapper would wait to copy them."""
    planned.plan(
        rows.q_starts, rows.page_starts, pages, rows.last_page_tokens,
        num_qo_heads=kind.n_heads, num_kv_heads=kind.n_kv_heads, head_dim_qk=kind.head_dim,
        page_size=PAGE_SIZE, causal=rows.is_causal, sm_scale=kind.scale,
        window_left=-1 if kind.window is None else kind.window - 1,
        logits_soft_cap=kind.softcap or 0.0, q_data_type=kind.dtype, kv_data_type=kind.dtype,
        max_token_per_sequence=int(rows.q_starts.diff().max()),  # else it checks row by row
    )  # fmt: skip


def kind_of(q: Tensor, k_pool: Tensor, v_pool: Tensor, heads: Heads) -> Kind | None:
    """The kind of a call; None if FlashInfer does not cover it."""
    head_dim = q.shape[2]
    is_covered = (
        heads.sinks is None
        and q.dtype in DTYPES
        and q.dtype == k_pool.dtype == v_pool.dtype
        and head_dim in HEAD_DIMS
        and v_pool.shape[2] == head_dim
    )
    if not is_covered:
        return None
    return Kind(
        q.shape[1], k_pool.shape[1], head_dim, q.dtype, heads.scale, heads.window, heads.softcap
    )
