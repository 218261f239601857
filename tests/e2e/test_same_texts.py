"""The examples give the same greedy texts over gRPC and, by the `openai` package, over HTTP; draws
of one seed are the same too."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import sgc
from sgc.runs.endpoint import Endpoint
from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.executor.interface.backend import Sampling

BENCH = Path(__file__).resolve().parents[2] / "benches" / "same_texts.py"


def load_bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("same_texts", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@sgc.function(heal=False)
def drawn(s):
    s += "Question: How many legs has a horse?\nLet us think step by step."
    s += sgc.gen("steps", max_tokens=24, temperature=1.0) + "\nSo the answer is"
    for fork in s.fork(2):
        fork += sgc.gen("answer", max_tokens=8, temperature=1.0)
        s += fork["answer"]


@pytest.fixture(scope="module")
def urls() -> Iterator[tuple[str, str]]:
    """The two faces of one engine, gRPC's first."""
    with EmbeddedEngine(None, ["--http", "0", "--max-running", "1"]) as engine:
        said = engine.stderr_tail.splitlines()
        http = next(x.removeprefix("HTTP on ") for x in said if x.startswith("HTTP on "))
        yield engine.uri, f"openai+{http}/v1#sgc-tiny"


@pytest.mark.slow
def test_the_examples_over_both_faces_of_one_engine(urls: tuple[str, str]) -> None:
    bench = load_bench()
    assert {path.stem for path in bench.EXAMPLES.glob("*.py")} == set(bench.ARGUMENTS)
    by_way = dict(zip((bench.GRPC, bench.OPENAI), urls, strict=True))
    found = {way: {row["name"]: row for row in bench.client(way, by_way)} for way in by_way}
    report = bench.compare(found)
    assert report == {name: {bench.OPENAI: "same"} for name in bench.ARGUMENTS}


@pytest.mark.parametrize("name", ["self_consistency", "tree_of_thought"])
def test_what_says_a_temperature_is_compared_greedily_too(
    name: str, scripted: Callable[..., Endpoint]
) -> None:
    asked: list[Sampling] = []
    backend = scripted(lambda prompt, sampling: asked.append(sampling) or "7")
    bench = load_bench()
    bench.example(name).run(**bench.ARGUMENTS[name], backend=backend, temperature=0)
    assert asked
    assert all(sampling.is_greedy for sampling in asked)


@pytest.mark.slow
def test_draws_of_one_seed_over_both_faces_of_one_engine(urls: tuple[str, str]) -> None:
    faces = sgc.connect(urls[0]), sgc.connect(urls[1] + "?api=completions")
    by_seed = [[drawn.run(backend=face, seed=seed).text() for face in faces] for seed in range(4)]
    assert all(text == other for text, other in by_seed)
    assert len({text for text, _ in by_seed}) > 1
