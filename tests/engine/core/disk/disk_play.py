"""Fake engines with a disk: freed pages are poisoned, and loading is always thought worth it."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from engine.core.conftest import Outcome, drive, make_core, make_model

from sgc.runtime.engine.disk.costs import Costs
from sgc.runtime.engine.disk.folder import KVFolder, own_folder
from sgc.runtime.engine.disk.tier import DiskTier
from sgc.runtime.engine.requests.request import EngineRequest, Generate
from sgc.runtime.engine.step.core import EngineCore

AMPLE_BYTES = 1 << 30
MODEL = b"one"


class AlwaysLoads(Costs):
    def is_worth_loading(self, n_loaded: int, n_without: int, n_with: int) -> bool:
        return True


class DiskEngine:
    """A core with a disk, and what its tests look at."""

    def __init__(
        self,
        path: Path,
        pool: int = 4096,
        max_bytes: int = AMPLE_BYTES,
        model: bytes = MODEL,
        costs: type[Costs] = AlwaysLoads,
        folder: type[KVFolder] = KVFolder,
        **options: object,
    ) -> None:
        self.model = make_model(pool)
        chunk_tokens = int(options.get("chunk_tokens", 512))  # type: ignore[call-overload]
        self.folder = folder(own_folder(path), max_bytes)
        self.tier = DiskTier(
            self.folder, model, self.model, costs(chunk_tokens, self.model.token_bytes)
        )
        self.core: EngineCore = make_core(
            pool=pool, forward=self.model, disk=self.tier, headroom_tokens=8, **options
        )
        self._poison_freed()

    def _poison_freed(self) -> None:
        pool, rng = self.core.cache.pool, np.random.default_rng(0)
        release = pool.release

        def poisoning(pages):
            self.model._prefix[pages] = rng.integers(0, 2**63, len(pages), dtype=np.uint64)
            release(pages)

        pool.release = poisoning  # type: ignore[method-assign]

    def run(self, requests: list[EngineRequest], **more: object) -> dict[int, Outcome]:
        return drive(self.core, requests, max_steps=10**7, **more)  # type: ignore[arg-type]

    def ask(self, tokens, id: int = 1, salt: bytes = b"", n: int = 4):
        """One generation's tokens, and its usage."""
        request = EngineRequest(id, np.asarray(tokens, np.int64), Generate(n), namespace=salt)
        outcome = self.run([request])[id]
        return outcome.ids, outcome.last.usage

    def evict(self) -> None:
        """Everything goes to disk."""
        cache = self.core.cache
        pages = cache.reserve(cache.n_available)
        cache.release(pages)
        self.tier._writer.finish(time.monotonic() + 10)

    @property
    def stats(self):
        return self.tier.stats()
