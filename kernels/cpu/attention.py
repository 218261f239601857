"""Attention over the paged pool by the native kernels, for models that run on modules of torch.

Tensors are passed by address. Heads that the kernels do not cover go to another backend. A step
program (`program.py`) attends within the library and does not call this.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from sgc.kernels.cpu.library import Format, Library, Threads
from sgc.kernels.cpu.records import HeadShape
from sgc.kernels.interface import Heads, PagedAttention, Ragged, check_shapes

_FORMATS = {torch.float32: Format.F32, torch.bfloat16: Format.BF16}


@dataclass(slots=True)
class _NativePlan:
    """One plan in the library's memory."""

    library: Library
    handle: int

    @property
    def n_reads(self) -> int:
        """How many keys a layer reads, summed over KV heads."""
        return int(self.library.c.sgc_attention_plan_reads(self.handle))

    def __del__(self) -> None:
        self.library.c.sgc_attention_plan_free(self.handle)


@dataclass(slots=True)
class Plan:
    """A step's plans, made for each kind of heads when a layer first asks. fallback: the other
    backend's plan, made in the same way."""

    ragged: Ragged
    native: dict[tuple[int, ...], _NativePlan] = field(default_factory=dict)
    fallback: Any = None


class NativeAttention:
    """deterministic: a token's output depends neither on other rows nor on chunks or threads.
    fallback: attends to heads whose dtype or layout the kernels do not cover."""

    def __init__(
        self,
        library: Library,
        threads: Threads,
        fallback: PagedAttention,
        *,
        deterministic: bool = False,
    ) -> None:
        self._library, self._threads, self._fallback = library, threads, fallback
        self._deterministic = deterministic

    def plan(self, ragged: Ragged) -> Plan:
        return Plan(ragged)

    def attend(self, q: Tensor, k_pool: Tensor, v_pool: Tensor, plan: Plan, heads: Heads) -> Tensor:
        check_shapes(q, k_pool, v_pool)
        q = q.contiguous()
        if not _is_covered(q, k_pool, v_pool):
            if plan.fallback is None:
                plan.fallback = self._fallback.plan(plan.ragged)
            return self._fallback.attend(q, k_pool, v_pool, plan.fallback, heads)
        sinks = None if heads.sinks is None else heads.sinks.detach().float().contiguous()
        shape = HeadShape(
            q.shape[1], k_pool.shape[1], q.shape[2], v_pool.shape[2], _FORMATS[q.dtype],
            _FORMATS[k_pool.dtype], heads.scale, heads.window or 0, heads.softcap or 0.0,
            None if sinks is None else sinks.data_ptr(),
        )  # fmt: skip
        out = q.new_empty(q.shape[0], q.shape[1], v_pool.shape[2])
        failed = self._library.c.sgc_attend(
            self._native_plan(plan, shape).handle, ctypes.byref(shape),
            q.data_ptr(), q.shape[1] * q.shape[2],
            k_pool.data_ptr(), v_pool.data_ptr(), out.data_ptr(), self._threads.handle,
        )  # fmt: skip
        if failed:
            raise self._library.error()
        return out

    def _native_plan(self, plan: Plan, shape: HeadShape) -> _NativePlan:
        key = (
            shape.n_heads, shape.n_kv_heads, shape.head_dim, shape.v_head_dim, shape.format,
            shape.window,
        )  # fmt: skip
        if key not in plan.native:
            ragged = plan.ragged
            handle = self._library.c.sgc_attention_plan(
                ragged.n_rows, ragged.row_starts.data_ptr(), ragged.pages.data_ptr(),
                ragged.page_starts.data_ptr(), ctypes.byref(shape), self._threads.count,
                self._deterministic,
            )  # fmt: skip
            if handle is None:
                raise self._library.error()
            plan.native[key] = _NativePlan(self._library, handle)
        return plan.native[key]


def _is_covered(q: Tensor, k_pool: Tensor, v_pool: Tensor) -> bool:
    """Whether all tensors are on the CPU, of one dtype that the kernels support."""
    return (
        q.dtype in _FORMATS
        and q.dtype == k_pool.dtype == v_pool.dtype
        and q.device.type == k_pool.device.type == v_pool.device.type == "cpu"
        and k_pool.is_contiguous()
        and v_pool.is_contiguous()
    )
