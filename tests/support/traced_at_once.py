"""Traces programs with live objects, also those that need none; or without."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from control_flow import agree

from sgc.errors import TraceError
from sgc.tracing import tracer


def live_at_once(trace: Any, alive: Any, budget: Any, is_full: Any, report: Any, _: Any) -> Any:
    """Traces with live objects, without another trace before."""
    return tracer._of_live(alive, budget, report)


def random_outcomes(
    seeds: Iterable[int],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    made: Any,
    found_at_once: Callable[..., Any],
) -> Counter[str]:
    """How many random programs are whole and equal to the interpreter, and how many are refused."""
    monkeypatch.setattr(tracer, "_found", found_at_once)
    monkeypatch.syspath_prepend(folder)
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        name = f"{found_at_once.__name__}_{made.__name__}_{seed}"
        (folder / f"{name}.py").write_text(made.source_of(seed))
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, name, raising=False)
        program = importlib.import_module(name).program
        try:
            graph = tracer.trace(program, is_full=True)
        except TraceError as error:
            outcomes["refused"] += 1
            print(seed, error)
            continue
        agree(program, made.REPLIES, n=4, graph=graph)
        outcomes["whole"] += 1
    return outcomes


def without_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces no live objects: what is refused without them stays so."""

    def refused(*given: Any) -> None:
        raise TraceError("without live objects")

    monkeypatch.setattr(tracer, "_of_live", refused)
