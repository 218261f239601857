"""Traces programs with references in the place of objects, or with live objects, also those that
need none; or without."""

from __future__ import annotations

from typing import Any

import pytest

from sgc.errors import TraceError
from sgc.tracing import tracer
from sgc.tracing.values.references.reference import may_refer


def at_once(trace: Any, apart: Any, alive: Any, budget: Any, is_full: Any, report: Any) -> Any:
    """Traces with references, without a trace of Python's objects before."""
    names = trace.function.python.__globals__
    layout = apart.sites.layout
    layout.is_used = layout.has_rows = True
    layout.classes = {
        name: each for name, each in names.items() if isinstance(each, type) and may_refer(each)
    }
    return tracer._traced(apart, budget, True, report)


def live_at_once(trace: Any, apart: Any, alive: Any, budget: Any, is_full: Any, report: Any) -> Any:
    """Traces with live objects, without another trace before."""
    return tracer._of_live(alive, budget, report)


def without_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces no live objects: what is refused without them stays so."""

    def refused(*given: Any) -> None:
        raise TraceError("without live objects")

    monkeypatch.setattr(tracer, "_of_live", refused)


def without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces dicts as they are: what code may not change of them is refused."""
    monkeypatch.setattr(tracer, "_has_rows", lambda trace: False)
