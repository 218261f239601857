"""Attention over the paged pool on a GPU, with kernels in Triton.

In `paged/`, `items.py` cuts a step into work items, `attend_kernel.py` computes them, and
`merge_kernel.py` merges the outputs of several items for one token. Decode, extend and shared
prefixes are all items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from sgc.kernels.interface import Heads, Ragged, check_shapes
from sgc.kernels.triton.paged import launch
from sgc.kernels.triton.paged.blocks import Shape
from sgc.kernels.triton.paged.decode_plan import DecodePlan
from sgc.kernels.triton.paged.items import SHARING, Ints, Sharing, plan_items
from sgc.kernels.triton.paged.launch import DeviceItems
from sgc.kernels.triton.paged.transfer import to_device

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
MAX_HEAD_DIM = 256
# Without a GPU, work is cut as for a GPU with so many multiprocessors.
_N_PROCESSORS = 132


def refusal(head_dim: int, v_head_dim: int, dtype: torch.dtype) -> str | None:
    """Why heads of that kind cannot be attended to; None if they can."""
    if max(head_dim, v_head_dim) > MAX_HEAD_DIM:
        return f"heads of {max(head_dim, v_head_dim)} numbers; at most {MAX_HEAD_DIM} are supported"
    if dtype not in DTYPES:
        return f"attention in {dtype}; float16, bfloat16 and float32 are supported"
    return None


@dataclass(frozen=True, slots=True)
class Plan:
    """What the layers of a step share. pages: on the device. Items are made on first use, for each
    window and shape of heads."""

    row_starts: Ints
    page_starts: Ints
    host_pages: Ints
    pages: Tensor
    longest: int
    sharing: Sharing
    made: dict[tuple[int | None, Shape], DeviceItems] = field(default_factory=dict)

    @property
    def n_tokens(self) -> int:
        return int(self.row_starts[-1])

    def items(self, window: int | None, shape: Shape) -> DeviceItems:
        if window is not None and window >= self.longest:
            window = None
        key = window, shape
        if key not in self.made:
            self.made[key] = self._make(window, shape)
        return self.made[key]

    def _make(self, window: int | None, shape: Shape) -> DeviceItems:
        items = plan_items(
            self.row_starts,
            self.page_starts,
            self.host_pages,
            shape,
            window=window,
            shares=True,
            sharing=self.sharing,
        )
        return DeviceItems(items.n_parts, *to_device(items.arrays(), self.pages.device))


class TritonAttention:
    """Implements `kernels.interface.PagedAttention` on a GPU; on the CPU, Triton's interpreter
    runs the kernels."""

    def __init__(self, device: torch.device | str, sharing: Sharing = SHARING) -> None:
        self.device = torch.device(device)
        self._sharing = sharing
        self._n_processors = _N_PROCESSORS
        if self.device.type == "cuda":
            properties = torch.cuda.get_device_properties(self.device)
            self._n_processors = properties.multi_processor_count
        self._graph_pages = torch.zeros(1, dtype=torch.int32, device=self.device)

    def plan(self, ragged: Ragged) -> Plan:
        """Copies the batch's pages to the device, without waiting."""
        page_starts = ragged.page_starts.numpy()
        pages = ragged.pages.numpy()
        (on_device,) = to_device([pages], self.device)
        longest = int((page_starts[1:] - page_starts[:-1]).max())
        return Plan(
            ragged.row_starts.numpy(), page_starts, pages, on_device, longest, self._sharing
        )

    def decode_plan(
        self,
        n_rows: int,
        max_pages: int,
        windows: Sequence[int | None],
        *,
        shares: bool = True,
    ) -> DecodePlan:
        """A plan whose arrays stay where they are, for CUDA graphs: of n_rows rows with one new
        token each and at most max_pages pages in all. windows: those of the layers.

        Attend once, for every kind of layer, before a graph is captured. shares: whether rows
        attend together to shared prefixes, which launches another kernel each time.

        Plans keep their batches' pages in the same memory, so no two plans may be filled before one
        runs.
        """
        if len(self._graph_pages) < max_pages:
            self._graph_pages = self._graph_pages.new_zeros(max_pages)
        pages = self._graph_pages[:max_pages]
        return DecodePlan(pages, n_rows, windows, self._sharing if shares else None)

    def attend(
        self, q: Tensor, k_pool: Tensor, v_pool: Tensor, plan: Plan | DecodePlan, heads: Heads
    ) -> Tensor:
        """As in the interface. An empty row's output is zeros."""
        check_shapes(q, k_pool, v_pool)
        if problem := refusal(q.shape[2], v_pool.shape[2], q.dtype):
            raise ValueError(problem)
        assert len(q) == plan.n_tokens, "q is of another batch than the plan"
        assert q.stride(2) == k_pool.stride(2) == v_pool.stride(2) == 1
        assert q.dtype == k_pool.dtype == v_pool.dtype
        shape = Shape(
            n_heads=q.shape[1],
            n_kv_heads=k_pool.shape[1],
            head_dim=q.shape[2],
            v_head_dim=v_pool.shape[2],
            n_processors=self._n_processors,
            item_bytes=q.element_size(),
        )
        assert refusal(shape.head_dim, shape.v_head_dim, q.dtype) is None
        items = plan.items(heads.window, shape)
        return launch.attend(q, k_pool, v_pool, plan.pages, items, heads, shape)
