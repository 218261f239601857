"""Writes a model's forward pass as a list of native operations, and runs it.

`native/program.h` says what each operation does; `records.py` has its structs.
A `Writer` collects operations over buffers of activations; `Writer.finished()` is a `Program`.
Nothing here knows a model family.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_void_p
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sgc.kernels.cpu.library import Epilogue, Format, Library, Packed, Threads, Weight
from sgc.kernels.cpu.records import (
    AdaptStep,
    BufferRecord,
    ExpertsStep,
    HeadShape,
    HeadsStep,
    Kind,
    NormKind,
    Op,
    StepRecord,
    check_layout,
)
from sgc.kernels.interface import Heads
from sgc.kernels.layers import HeadLayout, Norm
from sgc.kernels.pages import PageFormat

Ints = npt.NDArray[np.int64]


PAIRS = (Epilogue.SWIGLU, Epilogue.GEGLU_TANH)
"""Epilogues that take two weights and return half as many columns."""


def format_of(dtype: torch.dtype) -> Format:
    formats = {torch.float32: Format.F32, torch.bfloat16: Format.BF16}
    if dtype not in formats:
        raise ValueError(f"our own kernels take {' and '.join(map(str, formats))}, not {dtype}")
    return formats[dtype]


@dataclass(frozen=True, slots=True)
class Buffer:
    """Activations of a step: [rows, width]. index: its place in the program."""

    index: int
    width: int
    format: Format


@dataclass(frozen=True, slots=True)
class ExpertBuffers:
    """logits: the router's, float32. rows, inner, wide: an expert's input, what is between its
    products, and its output, float32."""

    logits: Buffer
    rows: Buffer
    inner: Buffer
    wide: Buffer


@dataclass(frozen=True, slots=True)
class LayerPages:
    """The formats of a layer's pages of K and of V."""

    format: PageFormat
    window: int | None


@dataclass(frozen=True, slots=True)
class Batch:
    """`runtime/engine/model/forward.py: FlatBatch`, as the arrays that a step reads. adapters:
    [n_tokens], the adapter of each token, from 1 on; None if the step has none."""

    tokens: Ints
    positions: Ints
    slots: Ints
    row_starts: Ints
    pages: Ints
    page_starts: Ints
    wanted: Ints
    adapters: Ints | None = None


class Program:
    """A model's forward pass. `bind` each layer's pools before the first run; not thread-safe.

    layers: what each layer's pages hold.
    """

    def __init__(self, library: Library, handle: int, written: Writer) -> None:
        self._library, self._handle = library, handle
        self._kept = [*written.kept, written.threads]  # the native records point to these
        self._n_pages = 0
        self.width = written.buffers[-1].width
        self.layers = written.layers

    def bind(self, layer: int, k_pool: Tensor, v_pool: Tensor) -> None:
        """k_pool, v_pool: of the layer's `PageFormat`, contiguous; kept alive by the caller."""
        assert k_pool.is_contiguous()
        assert v_pool.is_contiguous()
        k, v = k_pool.data_ptr(), v_pool.data_ptr()
        if self._library.c.sgc_program_bind(self._handle, layer, k, v):
            raise self._library.error()
        self._n_pages = len(k_pool)

    def gather_pages(self, n: int) -> bool:
        """The same as `Library.gather_pages`."""
        return self._library.gather_pages(n)

    def run(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Writes the new tokens' K and V, and returns the last buffer's rows: [n_wanted, width]."""
        found = np.empty((len(batch.wanted), self.width), np.float32)
        arrays = [
            np.ascontiguousarray(array, np.int64)
            for array in (
                batch.tokens, batch.positions, batch.slots, batch.row_starts, batch.pages,
                batch.page_starts, batch.wanted,
            )
        ]  # fmt: skip
        counts = (len(batch.tokens), len(batch.row_starts) - 1, len(batch.wanted), self._n_pages)
        adapters = batch.adapters
        if adapters is not None:
            adapters = np.ascontiguousarray(adapters, np.int64)
        step = StepRecord(
            *counts,
            *(array.ctypes.data for array in arrays),
            None if adapters is None else adapters.ctypes.data,
        )
        if self._library.c.sgc_program_run(self._handle, ctypes.addressof(step), found.ctypes.data):
            raise self._library.error()
        return found

    def __del__(self) -> None:
        self._library.c.sgc_program_free(self._handle)


@dataclass(slots=True)
class Writer:
    """Collects a program. dtype: of weights and activations; residuals and logits are float32.

    is_deterministic: a row's logits do not depend on the rows beside it. packs_as: how products
    hold their weights, if not in dtype; pages_as: how pages hold K and V.
    """

    library: Library
    threads: Threads
    dtype: torch.dtype
    is_deterministic: bool = False
    packs_as: Format | None = None
    pages_as: torch.dtype | None = None
    buffers: list[Buffer] = field(default_factory=list)
    layers: dict[int, LayerPages] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)
    _ops: list[Op] = field(default_factory=list)
    _named: dict[tuple[str, int, Format], Buffer] = field(default_factory=dict)
    _shapes: dict[tuple[Any, ...], HeadShape] = field(default_factory=dict)

    def buffer(self, name: str, width: int, *, is_wide: bool = False) -> Buffer:
        """The buffer of that name and width, the same at each call. is_wide: in float32."""
        key = name, width, Format.F32 if is_wide else format_of(self.dtype)
        if key not in self._named:
            made = Buffer(len(self.buffers), width, key[2])
            self._named[key] = made
            self.buffers.append(made)
        return self._named[key]

    def embed(self, table: Tensor, out: Buffer, scale: float = 1.0) -> None:
        """out = scale * the tokens' rows of the table: [vocab, width]."""
        self._table(Kind.EMBED, table, out, scale)

    def place(self, table: Tensor, out: Buffer) -> None:
        """out += the positions' rows of the table: [n_positions, width]."""
        self._table(Kind.PLACE, table, out, 1.0)

    def norm(
        self,
        norm: Norm,
        in_: Buffer,
        out: Buffer,
        *,
        adds: bool = False,
        at: int = 0,
        width: int = 0,
    ) -> None:
        """out = norm(in_), or out += norm(in_); at, width: the part of a row."""
        self._op(
            Kind.NORM, in_, out, in_at=at, out_at=at, width=width, adds=int(adds), eps=norm.eps,
            norm_kind=int(NormKind.LAYER if norm.is_layer_norm else NormKind.RMS),
            weight=self._wide(norm.weight),
            bias=self._wide(norm.bias),
        )  # fmt: skip

    def copy(self, in_: Buffer, out: Buffer) -> None:
        self._op(Kind.NORM, in_, out, norm_kind=int(NormKind.NONE))

    def linear(
        self, packed: Packed, in_: Buffer, out: Buffer, epilogue: Epilogue, scale: float = 1.0
    ) -> None:
        """out = epilogue(in_ @ weight.T + bias)."""
        self._op(Kind.LINEAR, in_, out, packed=packed.handle, epilogue=int(epilogue), scale=scale)

    def pack(
        self,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor] = (),
        *,
        are_pairs: bool = False,
        in_dtype: bool = False,
    ) -> Packed:
        """Packs weights of one input, [n_out, n_in] each, one after the other or as pairs.
        in_dtype: ignores `packs_as`."""
        matrices = [weight.detach().to(self.dtype).contiguous() for weight in weights]
        bias = torch.cat([b.detach().float() for b in biases]).contiguous() if biases else None
        packed = Packed(
            self.library,
            format_of(self.dtype),
            [Weight(matrix.data_ptr(), len(matrix)) for matrix in matrices],
            matrices[0].shape[1],
            self.threads,
            biases=None if bias is None else bias.data_ptr(),
            interleaved=are_pairs,
            packed_as=None if in_dtype else self.packs_as,
        )
        self.kept.append(packed)
        return packed

    def attend(
        self, layer: int, qkv: Buffer, out: Buffer, layout: HeadLayout, heads: Heads
    ) -> None:
        """Norms and rotates the heads in qkv, writes K and V to the pool, and attends."""
        rope = layout.rope
        page = PageFormat(layout.n_kv_heads, layout.head_dim, self.pages_as or self.dtype)
        self.layers[layer] = LayerPages(page, heads.window)
        step = self._keep(
            HeadsStep(
                layout.n_heads, layout.n_kv_heads, layout.head_dim, int(qkv.format),
                self._pool_format, self._head_norm(layout.q_norm), self._head_norm(layout.k_norm),
                layout.q_norm.eps if layout.q_norm else 0.0, False,
                rope.n_rotated if rope else 0, bool(rope and rope.is_interleaved),
            )
        )  # fmt: skip
        self._op(
            Kind.HEADS, qkv, qkv, index=layer, heads=ctypes.addressof(step),
            inverse=self._wide(rope.inverse) if rope else None,
            rope_scale=rope.scale if rope else 1.0,
        )  # fmt: skip
        shape = self._shape(layout, heads, qkv.format)
        self._op(Kind.ATTEND, qkv, out, index=layer, shape=ctypes.addressof(shape))

    def experts(
        self,
        experts: Sequence[tuple[Packed, Packed]],
        epilogue: Epilogue,
        buffers: ExpertBuffers,
        in_: Buffer,
        out: Buffer,
        *,
        n_chosen: int,
        is_normed: bool,
        scale: float = 1.0,
    ) -> None:
        """out += scale * the weighted outputs of each row's likeliest experts. experts: each
        expert's two products, with the epilogue between them. is_normed: the weights sum to one."""
        into, out_of = (
            self._keep((c_void_p * len(experts))(*(product.handle for product in products)))
            for products in zip(*experts, strict=True)
        )
        step = self._keep(
            ExpertsStep(
                len(experts), n_chosen, int(is_normed), int(epilogue), buffers.logits.index,
                buffers.rows.index, buffers.inner.index, buffers.wide.index,
                ctypes.addressof(into), ctypes.addressof(out_of),
            )
        )  # fmt: skip
        self._op(Kind.EXPERTS, in_, out, scale=scale, experts=ctypes.addressof(step))

    def adapt(self, in_: Buffer, out: Buffer, downs: Sequence[tuple[Packed | None, int]]) -> None:
        """out = the input's rows, each followed by the output of its adapter's product. downs: for
        each adapter, its product, None if it has none here, and the first column of its output."""
        n = len(downs)
        handles = [None if down is None else down.handle for down, _ in downs]
        products = self._keep((c_void_p * n)(*handles))
        places = self._keep((ctypes.c_int32 * n)(*(at for _, at in downs)))
        step = self._keep(AdaptStep(n, ctypes.addressof(products), ctypes.addressof(places)))
        self._op(Kind.ADAPT, in_, out, adapt=ctypes.addressof(step))

    def select(self, *buffers: Buffer) -> None:
        """From here on, one or two buffers have only the wanted rows."""
        self._op(Kind.SELECT, buffers[0], buffers[-1])

    def cap(self, out: Buffer, scale: float = 1.0, cap: float = 0.0) -> None:
        """out = cap * tanh(scale * out / cap), or with no cap, scale * out."""
        self._op(Kind.CAP, out, out, scale=scale, cap=cap)

    def last(self, name: str, width: int) -> Buffer:
        """The last buffer, which a run returns; no other may be made after it."""
        return self.buffer(name, width, is_wide=True)

    def branch(self) -> Writer:
        """A writer that continues separately from here; both programs share weights."""
        return replace(
            self, buffers=list(self.buffers), _ops=list(self._ops), _named=dict(self._named)
        )

    def finished(self) -> Program:
        ops = (Op * len(self._ops))(*self._ops)
        records = [BufferRecord(b.width, int(b.format)) for b in self.buffers]
        buffers = (BufferRecord * len(records))(*records)
        check_layout(self.library)
        handle = self.library.c.sgc_program_new(
            ctypes.addressof(ops), len(ops), ctypes.addressof(buffers), len(buffers),
            self.is_deterministic, self.threads.handle,
        )  # fmt: skip
        if handle is None:
            raise self.library.error()
        return Program(self.library, handle, self)

    def _table(self, kind: Kind, table: Tensor, out: Buffer, scale: float) -> None:
        table = self._keep(table.detach().contiguous())
        self._op(
            kind, out, out, weight=table.data_ptr(), format=int(format_of(table.dtype)),
            scale=scale, n_entries=len(table),
        )  # fmt: skip

    @property
    def _pool_format(self) -> int:
        return int(Format.I8 if self.pages_as == torch.int8 else format_of(self.dtype))

    def _shape(self, layout: HeadLayout, heads: Heads, format: Format) -> HeadShape:
        """One shape for all layers that attend in the same way, so that they share a plan."""
        values = (
            layout.n_heads, layout.n_kv_heads, layout.head_dim, layout.head_dim, int(format),
            self._pool_format, heads.scale, heads.window or 0, heads.softcap or 0.0,
        )  # fmt: skip
        if heads.sinks is not None:
            shape = HeadShape(*values, self._wide(heads.sinks))
            self.kept.append(shape)
            return shape
        if values not in self._shapes:
            self._shapes[values] = HeadShape(*values, None)
            self.kept.append(self._shapes[values])
        return self._shapes[values]

    def _head_norm(self, norm: Norm | None) -> int | None:
        return None if norm is None else self._wide(norm.weight)

    def _wide(self, values: Tensor | None) -> int | None:
        """The address of the values as float32."""
        if values is None:
            return None
        wide = values.detach().float().contiguous()
        self.kept.append(wide)
        return wide.data_ptr()

    def _op(self, kind: Kind, in_: Buffer, out: Buffer, **fields: Any) -> None:
        self._ops.append(Op(kind=int(kind), in_=in_.index, out=out.index, **fields))

    def _keep(self, value: Any) -> Any:
        self.kept.append(value)
        return value
