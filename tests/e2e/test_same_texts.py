"""The examples give the same greedy texts over gRPC and, by the `openai` package, over HTTP."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from sgc.runtime.engine.launch import EmbeddedEngine

BENCH = Path(__file__).resolve().parents[2] / "benches" / "same_texts.py"


def load_bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("same_texts", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_examples_over_both_faces_of_one_engine() -> None:
    bench = load_bench()
    assert {path.stem for path in bench.EXAMPLES.glob("*.py")} == set(bench.ARGUMENTS)
    with EmbeddedEngine(None, ["--http", "0", "--max-running", "1"]) as engine:
        said = engine.stderr_tail.splitlines()
        http = next(x.removeprefix("HTTP on ") for x in said if x.startswith("HTTP on "))
        urls = {bench.GRPC: engine.uri, bench.OPENAI: f"openai+{http}/v1#sgc-tiny"}
        found = {way: {row["name"]: row for row in bench.client(way, urls)} for way in urls}
    report = bench.compare(found)
    assert report == {name: {bench.OPENAI: "same"} for name in bench.ARGUMENTS}
