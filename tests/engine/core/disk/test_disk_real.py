"""A real model's texts with a disk are those without: `--deterministic`, so that they are equal to
the token however prompts are cut. Freed pages are filled with NaN."""

from __future__ import annotations

import numpy as np
import pytest
from engine.core.conftest import drive
from engine.core.disk.disk_play import AlwaysLoads
from engine.core.disk.test_disk_churn import Prompts

from sgc.kernels.cpu import library
from sgc.runtime.engine.cache.page_bytes import HostPages
from sgc.runtime.engine.disk.folder import KVFolder, own_folder
from sgc.runtime.engine.disk.tier import DiskTier
from sgc.runtime.engine.model.loading import load_model
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.model.runner import Needs
from sgc.runtime.engine.requests.request import EngineRequest, Generate
from sgc.runtime.engine.step.core import EngineCore

POOL, N = 1024, 40


@pytest.mark.slow
@pytest.mark.parametrize("kv", ["auto", "int8"])
@pytest.mark.skipif(library.find() is None, reason="needs our own kernels")
def test_texts_are_those_without_a_disk(tmp_path, kv):
    needs = Needs(deterministic=True, kv=kv)
    runner = load_model(str(DEFAULT_FOLDER), pool_tokens=POOL, needs=needs, text=np.arange(64))
    pages = HostPages(runner.pool)

    def engine(tier=None):
        core = EngineCore(
            runner, pool_tokens=POOL, max_context=runner.max_context, check=True,
            vocab_size=runner.vocab_size, disk=tier,
        )  # fmt: skip
        release = core.cache.pool.release

        def poisoning(freed):
            pages.write(freed, np.full(len(freed) * pages.token_bytes, 255, np.uint8))
            release(freed)

        core.cache.pool.release = poisoning
        return core

    rng = np.random.default_rng(5)
    prompts = Prompts(rng, 12)
    asked = [EngineRequest(i, prompts.draw(), Generate(6)) for i in range(N)]
    right = {}
    for request in asked:
        core = engine()
        right |= drive(core, [request])
        core.flush_cache()
    folder = KVFolder(own_folder(tmp_path / "kv"), 1 << 30)
    tier = DiskTier(folder, b"model", pages, AlwaysLoads(512, pages.token_bytes))
    done = drive(engine(tier), asked, per_step=1, max_steps=10**7)
    assert {i: one.ids for i, one in done.items()} == {i: one.ids for i, one in right.items()}
    assert tier.stats().disk_loads > 3
