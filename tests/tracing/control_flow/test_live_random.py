"""Random programs of objects and rows, traced with live objects, are as interpreted.

`SEEDS=0:600 pytest -s -m slow tests/tracing/control_flow/test_live_random.py` runs others.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import random_objects
import random_rows
from control_flow import agree
from traced_at_once import live_at_once

from sgc.errors import TraceError
from sgc.tracing import tracer

KINDS = pytest.mark.parametrize("made", [random_objects, random_rows], ids=["objects", "rows"])


def _outcomes(
    seeds: Iterable[int], folder: Path, monkeypatch: pytest.MonkeyPatch, made: Any
) -> Counter[str]:
    monkeypatch.setattr(tracer, "_found", live_at_once)
    monkeypatch.syspath_prepend(folder)
    found: Counter[str] = Counter()
    for seed in seeds:
        name = f"live_{made.__name__}_{seed}"
        (folder / f"{name}.py").write_text(made.source_of(seed))
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, name, raising=False)
        program = importlib.import_module(name).program
        try:
            graph = tracer.trace(program, is_full=True)
        except TraceError as error:
            found["refused"] += 1
            print(seed, error)
            continue
        agree(program, made.REPLIES, n=4, graph=graph)
        found["whole"] += 1
    return found


@pytest.mark.full_budget
@KINDS
def test_random_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Any) -> None:
    assert _outcomes(range(2), tmp_path, monkeypatch, made)["whole"] == 2


@pytest.mark.slow
@pytest.mark.full_budget
@pytest.mark.timeout(0)
@KINDS
def test_many_random_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Any) -> None:
    first, last = map(int, os.environ.get("SEEDS", "0:40").split(":"))
    found = _outcomes(range(first, last), tmp_path, monkeypatch, made)
    print(f"{made.__name__}: {dict(found)}")
    assert found["refused"] <= 0.02 * found.total()
