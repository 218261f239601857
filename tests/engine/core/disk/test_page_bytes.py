"""The bytes of pages of real pools: they are copied as they are, and keyed by how they are made."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sgc.kernels.pages import PageFormat
from sgc.runtime.engine.cache.kv_pool import KVPool
from sgc.runtime.engine.cache.page_bytes import HostPages
from sgc.runtime.engine.names import StepOptions
from sgc.runtime.engine.worker.disk import Disk

DTYPES = [torch.float32, torch.bfloat16, torch.int8]
N = 10


def pool_of(dtype: torch.dtype, n_heads: int = 3) -> KVPool:
    """A pool that no step has used yet. K and V are of different sizes."""
    pool = KVPool(N)
    for layer in range(2):
        pool.formats[layer] = PageFormat(n_heads, 8, dtype), PageFormat(n_heads, 6, dtype)
    return pool


def tensors(pool: KVPool) -> list[torch.Tensor]:
    return [tensor.view(torch.uint8) for pools in pool.layers.values() for tensor in pools]


@pytest.mark.parametrize("dtype", DTYPES)
def test_pages_come_back_as_they_were(dtype):
    pool = pool_of(dtype)
    pages = HostPages(pool)
    assert sorted(pool.layers) == [0, 1]
    for tensor in tensors(pool):
        tensor.random_(0, 256)
    before = [tensor.clone() for tensor in tensors(pool)]
    data = pages.read(np.array([7, 2, 5, 1]))
    assert len(data) == 4 * pages.token_bytes == 4 * pool.token_bytes
    pages.write(np.array([3, 0]), data)  # the last two of them
    for tensor, was in zip(tensors(pool), before, strict=True):
        assert torch.equal(tensor[[3, 0]], was[[5, 1]])
        rest = [1, 2, 4, 5, 6, 7, 8, 9]
        assert torch.equal(tensor[rest], was[rest])
    assert not np.shares_memory(data, pages.read(np.array([7])))


def test_what_is_computed_otherwise_has_other_keys(tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text("{}")
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"one")
    options = StepOptions(kv_dir=str(tmp_path / "kv"))

    def key(**changed):
        facts = {"dtype_name": "a", "weights_name": "a", "kv_name": "a", "way": "a", "sure": False}
        facts |= {"pool": pool_of(torch.float32), **changed}
        runner = SimpleNamespace(
            **facts | {"way": SimpleNamespace(name=facts["way"])},
            states=None,
            needs=SimpleNamespace(deterministic=facts["sure"]),
        )
        return Disk(options, str(tmp_path)).tier_of(runner)._model

    same = key()
    assert key() == same
    for changed in ("dtype_name", "weights_name", "kv_name", "way"):
        assert key(**{changed: "b"}) != same
    assert key(sure=True) != same
    monkeypatch.setattr(torch, "__version__", "another")
    assert key() != same
    monkeypatch.undo()
    assert key(pool=pool_of(torch.float32, n_heads=2)) != same
    weights.write_bytes(b"two")
    assert key() != same
