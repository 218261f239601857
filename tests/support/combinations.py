"""Combinations of cases, of which `make test` runs a few."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest


def each_occurs(*axes: Sequence[Any]) -> list[Any]:
    """All combinations, for `parametrize`: `make test` runs as many as the longest axis has cases,
    so that each case of each axis occurs; the others are slow."""
    soon = {tuple(i % len(axis) for axis in axes) for i in range(max(map(len, axes)))}
    return [
        pytest.param(
            *(axis[n] for axis, n in zip(axes, at, strict=True)),
            marks=() if at in soon else pytest.mark.slow,
        )
        for at in product(*(range(len(axis)) for axis in axes))
    ]
