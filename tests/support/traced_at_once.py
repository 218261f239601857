"""Traces programs with references in the place of objects, also those that need none; or with none
in the place of dicts."""

from __future__ import annotations

from typing import Any

import pytest

from sgc.tracing import tracer
from sgc.tracing.values.references.reference import may_refer


def at_once(trace: Any, apart: Any, budget: Any, is_full: Any, report: Any) -> Any:
    """Traces with references, without a trace of Python's objects before."""
    names = trace.function.python.__globals__
    layout = apart.sites.layout
    layout.is_used = layout.has_rows = True
    layout.classes = {
        name: each for name, each in names.items() if isinstance(each, type) and may_refer(each)
    }
    return tracer._traced(apart, budget, True, report)


def without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces dicts as they are: what code may not change of them is refused."""
    monkeypatch.setattr(tracer, "_has_rows", lambda trace: False)
