"""How many examples a property test draws."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

SHARE = 16  # of the whole number, so that `make test` is soon done
IS_WHOLE = os.environ.get("EXAMPLES") == "all"


def examples(whole: int, share: int = SHARE, **more: Any) -> settings:
    """Settings that draw a part of so many examples, and all with EXAMPLES=all."""
    n = whole if IS_WHOLE else max(8, whole // share)
    return settings(max_examples=n, deadline=None, database=None, derandomize=True, **more)
