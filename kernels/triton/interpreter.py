"""Whether Triton's kernels run in its interpreter, on the CPU, as tests without a GPU do."""

from __future__ import annotations

import os


def is_interpreted() -> bool:
    """True with TRITON_INTERPRET=1, which must be set before triton is imported."""
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "yes", "on")
