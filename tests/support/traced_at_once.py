"""Traces programs with references in the place of objects, also those that need none."""

from __future__ import annotations

from typing import Any

from sgc.tracing import tracer
from sgc.tracing.values.references.reference import may_refer


def at_once(trace: Any, apart: Any, budget: Any, is_full: Any, report: Any) -> Any:
    """Traces with references, without a trace of Python's objects before."""
    names = trace.function.python.__globals__
    layout = apart.sites.layout
    layout.is_used = True
    layout.classes = {
        name: each for name, each in names.items() if isinstance(each, type) and may_refer(each)
    }
    return tracer._traced(apart, budget, True, report)
