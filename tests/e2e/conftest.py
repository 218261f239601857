"""Engines for whole-program tests: one server process a model and session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sgc
from sgc.endpoints import Runtime


@pytest.fixture(scope="session")
def fake_engine() -> Iterator[Runtime]:
    with Runtime("fake", check=True) as runtime:
        yield runtime


@pytest.fixture(scope="session")
def default_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    """The default model, in a cache folder of its own: made as on a fresh machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SGC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        with Runtime(check=True) as runtime:
            yield runtime


@pytest.fixture(params=["fake", "default"])
def engine(request: pytest.FixtureRequest) -> sgc.Runtime:
    """Each of them, with an empty cache."""
    runtime: sgc.Runtime = request.getfixturevalue(f"{request.param}_engine")
    runtime.flush_cache()
    return runtime
