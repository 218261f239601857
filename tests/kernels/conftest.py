"""The native library, where it can be had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kernel_cache import empty_cache

from sgc.kernels.cpu import compiling, library
from sgc.kernels.cpu.library import Isa, Library, Threads


@pytest.fixture(scope="session")
def native() -> Library:
    compiling.TIMEOUT_S = 110.0  # other tests want the cores too
    found = library.find()
    if found is None:
        pytest.skip(f"no native kernels: {library.reason()}")
    return found


@pytest.fixture(scope="session")
def threads(native: Library) -> Threads:
    return Threads(native, 3)


@pytest.fixture(params=list(Isa), ids=lambda isa: isa.name.lower())
def isa(request: pytest.FixtureRequest, native: Library) -> Iterator[Isa]:
    """Each instruction set that this machine has, in turn."""
    if not native.has(request.param):
        pytest.skip(f"this machine has no {request.param.name}")
    best = native.isa
    native.limit(request.param)
    yield request.param
    native.limit(best)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return empty_cache(tmp_path, monkeypatch)
