"""What tests of Triton kernels share: the device they run on."""

from __future__ import annotations

import pytest
import torch
from triton_interpreter import replace_once

replace_once()


@pytest.fixture(scope="session")
def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def _poisoned():
    """Memory that is not written yet holds NaN, or the greatest whole number."""
    assert torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)
