"""Attention over the paged pool by FlashInfer's kernels (Ye et al., 2025), planned once a step.

Its prefill kernels serve decoding rows too: they compute on tensor cores, and one compiled module
is then enough for a kind of heads. FlashInfer compiles a module when it is first used, and keeps it
(`FLASHINFER_WORKSPACE_BASE`); `sgc doctor --prepare` does that ahead. Heads that it does not cover
go to another backend.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from sgc.kernels.flashinfer.decoding import DecodePlan
from sgc.kernels.flashinfer.inputs import Batch, Rows, cascaded, sent, whole
from sgc.kernels.flashinfer.library import FlashInfer, Kind, Library, Planned, kind_of, plan_rows
from sgc.kernels.flashinfer.workspace import Workspace
from sgc.kernels.interface import Heads, PagedAttention, Ragged, check_shapes

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Plan:
    """A step's batch and its plans: one for each kind of heads, made when a layer first asks."""

    ragged: Ragged
    whole: Batch
    cascaded: Batch | None = None
    of_kinds: dict[Kind, _OfKind] = field(default_factory=dict)
    fallback: Any = None


@dataclass(frozen=True, slots=True)
class _OfKind:
    """order: on the device. n_shared: the number of tokens that share a trunk."""

    own: Planned
    trunks: Planned | None = None
    order: Tensor | None = None
    n_shared: int = 0


class FlashInferAttention:
    """fallback: attends where FlashInfer cannot: sinks, float32, other head sizes, and so many
    heads for each KV head that memory does not suffice."""

    def __init__(
        self,
        device: torch.device | str,
        fallback: PagedAttention,
        library: Library | None = None,
    ) -> None:
        self._device, self._fallback = torch.device(device), fallback
        self._library: Library = library or FlashInfer()
        self._workspace = Workspace(self._device)
        self._graph_pages = torch.zeros(0, dtype=torch.int32, device=self._device)
        self._told: set[str] = set()
        self._kept: dict[tuple[Kind, bool], Planned] = {}

    def plan(self, ragged: Ragged) -> Plan:
        return Plan(ragged, whole(ragged))

    def attend(self, q: Tensor, k_pool: Tensor, v_pool: Tensor, plan: Any, heads: Heads) -> Tensor:
        check_shapes(q, k_pool, v_pool)
        kind = kind_of(q, k_pool, v_pool, heads)
        n_rows = plan.n_rows if isinstance(plan, DecodePlan) else 0
        if kind is None or not self._workspace.fits(kind, n_rows):
            self._tell(q, heads)
            return self._by_fallback(q, k_pool, v_pool, plan, heads)
        pools = k_pool[:, None], v_pool[:, None]  # pages of one token
        if isinstance(plan, DecodePlan):
            out: Tensor = plan.planned(kind).run(q, pools)
            return out
        found = plan.of_kinds.get(kind)
        if found is None:
            found = plan.of_kinds[kind] = self._planned(plan, kind)
        return self._run(found, q, pools)

    def decode_plan(self, n_rows: int, max_pages: int, windows: list[int | None]) -> DecodePlan:
        """A plan for graphs of decoding steps, as `TritonAttention.decode_plan`."""
        fallback: Any = self._fallback
        if len(self._graph_pages) < max_pages:
            self._graph_pages = self._graph_pages.new_zeros(max_pages)
        return DecodePlan(
            self._library, self._workspace, n_rows, self._graph_pages[:max_pages],
            lambda: fallback.decode_plan(n_rows, max_pages, windows),
        )  # fmt: skip

    def _tell(self, q: Tensor, heads: Heads) -> None:
        """Warns once of heads that are not covered: at load, when the model is checked."""
        dtype = str(q.dtype).removeprefix("torch.")
        what = f"{q.shape[1]} heads of {q.shape[2]} in {dtype}"
        what += "" if heads.sinks is None else " with sinks"
        if what not in self._told:
            self._told.add(what)
            _log.warning("FlashInfer does not attend with %s: our own kernels do", what)

    def _by_fallback(
        self, q: Tensor, k_pool: Tensor, v_pool: Tensor, plan: Any, heads: Heads
    ) -> Tensor:
        if plan.fallback is None:
            is_held = isinstance(plan, DecodePlan)
            plan.fallback = plan.make_fallback() if is_held else self._fallback.plan(plan.ragged)
        return self._fallback.attend(q, k_pool, v_pool, plan.fallback, heads)

    def _planned(self, plan: Plan, kind: Kind) -> _OfKind:
        batch = plan.whole
        if kind.window is None:
            if plan.cascaded is None:
                plan.cascaded = cascaded(plan.ragged)
            batch = plan.cascaded
        own = self._plan_rows(kind, batch.own, is_of_trunks=False)
        if batch.trunks is None:
            return _OfKind(own)
        trunks = self._plan_rows(kind, batch.trunks, is_of_trunks=True)
        order = None if batch.order is None else sent(batch.order, self._device)
        return _OfKind(own, trunks, order, batch.n_shared)

    def _plan_rows(self, kind: Kind, rows: Rows, is_of_trunks: bool) -> Planned:
        """Plans the rows with a wrapper that is kept from step to step, like its buffers."""
        key = kind, is_of_trunks
        if key not in self._kept:
            self._kept[key] = self._library.planned(self._workspace.of(kind), None)
        plan_rows(self._kept[key], kind, rows, sent(rows.pages, self._device))
        return self._kept[key]

    def _run(self, found: _OfKind, q: Tensor, pools: tuple[Tensor, Tensor]) -> Tensor:
        if found.trunks is None:
            out: Tensor = found.own.run(q, pools)
            return out
        if found.order is not None:
            q = q[found.order]
        n = found.n_shared
        out, lse = found.own.run(q, pools, return_lse=True)
        of_trunks = found.trunks.run(q[:n], pools, return_lse=True)
        out[:n] = self._library.merge(of_trunks, (out[:n], lse[:n]))
        if found.order is None:
            return out
        placed = torch.empty_like(out)
        placed[found.order] = out
        return placed
