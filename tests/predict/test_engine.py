"""Predictions for our engine, held against runs on it: request by request where the replies are
known, and without any log where their lengths are.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from random_programs import random_program

import sgc
from sgc.predict.dry.dry_run import Row
from sgc.predict.dry.samples import Samples
from sgc.predict.dry.totals import Key, Total, Totals, measured
from sgc.predict.predict import Expecting, expected
from sgc.predict.targets import EngineTarget
from sgc.programs.function import Function
from sgc.runs.endpoints import Runtime
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.options import RunOptions

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STRAIGHT: Mapping[str, Mapping[str, Any]] = {
    "tip_suggestion": {"topic": "staying healthy"},
    "essay_judge": {"essay": "Tea is older than paper. It travelled by road and by sea."},
    "few_shot": {"question": "What do cows drink?"},
    "chat": {"first": "What is tea?", "second": "And coffee?"},
    "extract": {"text": "Ada Moor was born in 1970. She bakes bread in York."},
}
BRANCHING: Mapping[str, Mapping[str, Any]] = {
    "react": {"question": "What is 12 times 7?"},
    "router": {"question": "What is the capital of Peru?"},
    "json_retry": {"text": "Ada Moor was born in 1970. She bakes bread in York."},
    "tree_of_thought": {"question": "Ada has 3 eggs and finds 4 more. How many has she now?"},
    "map_reduce": {"chunks": ["Tea is older than paper.", "It travelled by sea.", "Cows eat."]},
}
FIELDS = ("requests", "prompt_tokens", "cached_tokens", "computed_tokens", "completion_tokens")


def load(name: str) -> Function:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Function = getattr(module, name)
    return found


def runs(
    engine: Runtime, program: sgc.Program, arguments: Mapping[str, Any], temperature: float,
    folder: Path,
) -> list[Totals]:  # fmt: skip
    """What a run on an empty cache uses, and one after it."""
    engine.flush_cache()
    found = []
    for name in ("cold", "warm"):
        with RunLog.open(folder / name) as log:
            options = RunOptions(seed=5, temperature=temperature, log=log)
            stats = program.run_once(arguments, options, engine).stats
        with RunLog.read(folder / name) as log:
            found.append(measured(log))
        assert values(found[-1].total) == tuple(getattr(stats, name) for name in FIELDS)
    return found


def predictions(
    target: EngineTarget, program: sgc.Program, arguments: Mapping[str, Any], folder: Path
) -> list[Totals]:
    """The same from the first run's replies; of its usage nothing is taken."""
    with RunLog.read(folder / "cold") as log:
        samples = Samples(log, program.graph)
        assert samples.rows == ["0"]
        todo, options = [Row("0", arguments)], samples.options()
        return [
            expected(
                program.graph, todo, target, Expecting(options, bool(program.level), is_warm),
                samples,
            )
            for is_warm in (False, True)
        ]  # fmt: skip


def values(total: Total) -> tuple[int, ...]:
    return tuple(getattr(total, name) for name in FIELDS)


def assert_equal(found: Totals, real: Totals) -> None:
    """Equal sums, and the same requests at each line. Which of the requests made at once computes
    what they share, the engine decides."""
    assert values(found.total) == values(real.total)
    assert by_line(found) == by_line(real)


def by_line(found: Totals) -> dict[Key, Total]:
    """What each line asks, whoever computes it."""
    return {key: replace(total, cached_tokens=0, computed_tokens=0)
            for key, total in found.by_key.items()}  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize(("level", "temperature"), [(0, 1.0), (2, 0.0)], ids=["seeded", "greedy"])
@pytest.mark.parametrize("name", STRAIGHT)
def test_straight_programs_compute_what_is_predicted(
    default_engine: Runtime, tiny: EngineTarget, tmp_path: Path, name: str, level: int,
    temperature: float,
) -> None:  # fmt: skip
    program = load(name).compile(opt_level=level, check=False)
    measures = runs(default_engine, program, STRAIGHT[name], temperature, tmp_path)
    for found, real in zip(
        predictions(tiny, program, STRAIGHT[name], tmp_path), measures, strict=True
    ):
        if not found.total.prefetched_tokens:
            assert_equal(found, real)
        else:  # whether what was computed ahead was there in time is the engine's affair
            together = found.total.computed_tokens + found.total.prefetched_tokens
            assert real.total.computed_tokens <= together
            assert found.total.prompt_tokens == real.total.prompt_tokens


@pytest.mark.parametrize("name", BRANCHING)
def test_branching_programs_compute_nearly_what_is_predicted(
    default_engine: Runtime, tiny: EngineTarget, tmp_path: Path, name: str
) -> None:
    program = load(name).compile(check=False)
    measures = runs(default_engine, program, BRANCHING[name], 1.0, tmp_path)
    for found, real in zip(
        predictions(tiny, program, BRANCHING[name], tmp_path), measures, strict=True
    ):
        assert found.total.requests == real.total.requests
        assert found.total.prompt_tokens == real.total.prompt_tokens
        assert found.total.computed_tokens == pytest.approx(real.total.computed_tokens, rel=0.02)


def check_random(default_engine: Runtime, tiny: EngineTarget, tmp_path: Path, seed: int) -> None:
    arguments = {"x": "a cup of tea", "y": "water", "n": 3}
    program = random_program(seed).compile(opt_level=seed % 2, check=False)
    measures = runs(default_engine, program, arguments, 0.7, tmp_path)
    found = predictions(tiny, program, arguments, tmp_path)
    for one, real in zip(found, measures, strict=True):
        ahead = one.total.prefetched_tokens
        if not ahead:
            assert values(one.total) == values(real.total)
        assert one.total.prompt_tokens == real.total.prompt_tokens
        assert real.total.computed_tokens <= one.total.computed_tokens + ahead


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(6))
def test_random_programs_compute_what_is_predicted(
    default_engine: Runtime, tiny: EngineTarget, tmp_path: Path, seed: int
) -> None:
    check_random(default_engine, tiny, tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 150))
def test_many_random_programs_compute_what_is_predicted(
    default_engine: Runtime, tiny: EngineTarget, tmp_path: Path, seed: int
) -> None:
    check_random(default_engine, tiny, tmp_path, seed)


@sgc.function
def fixed(s, topic: str):
    s += "Some notes on " + topic + ":"
    s += sgc.gen("notes", max_tokens=17, ignore_eos=True)
    group = s.fork(3)
    for child, what in zip(group, ("old", "new", "dear"), strict=True):
        child += f"\nIs it {what}? " + sgc.gen("view", max_tokens=5, ignore_eos=True)
    group.join()
    s += "\nAll in all: " + sgc.gen("all", max_tokens=6, ignore_eos=True)


@sgc.function
def choosing(s, topic: str):
    s += "Is " + topic + " a drink? " + sgc.select("drink", choices=["yes", "no", "not sure"])


@pytest.mark.parametrize("function", [fixed, choosing], ids=["lengths", "choices"])
def test_without_a_log_where_lengths_are_known(
    default_engine: Runtime, tiny: EngineTarget, tmp_path: Path, function: Function
) -> None:
    program = function.compile(opt_level=0, check=False)
    arguments = {"topic": "green tea"}
    (cold, warm) = runs(default_engine, program, arguments, 1.0, tmp_path)
    todo, options = [Row("0", arguments)], RunOptions(seed=5)
    for real, is_warm in ((cold, False), (warm, True)):
        found = expected(program.graph, todo, tiny, Expecting(options, False, is_warm))
        assert_equal(found, real)


def test_rows_that_begin_alike_share_what_is_computed(
    default_engine: Runtime, tiny: EngineTarget, tmp_path: Path
) -> None:
    program = fixed.compile(opt_level=0, check=False)
    given = [{"topic": f"tea number {n}"} for n in range(12)] + [{"topic": "tea number 3"}]
    default_engine.flush_cache()
    with RunLog.open(tmp_path / "log") as log:
        states = program.run_batch(given, backend=default_engine, log=log, seed=5)
        assert [state.error() for state in states] == [None] * len(given)
    with RunLog.read(tmp_path / "log") as log:
        real = measured(log).total
        todo = [Row(str(n), row) for n, row in enumerate(given)]
        how = Expecting(Samples(log, program.graph).options(), shares=False)
        unseen = expected(program.graph, todo, tiny, how).total
        seen = expected(program.graph, todo, tiny, how, Samples(log, program.graph)).total
    assert values(seen) == values(real)
    assert values(unseen) == values(real)


def test_a_small_pool_forgets(tiny: EngineTarget) -> None:
    program = fixed.compile(opt_level=0, check=False)
    todo = [Row(str(n), {"topic": f"tea number {n % 4}"}) for n in range(8)]
    how = Expecting(RunOptions(seed=5))
    totals = [
        expected(program.graph, todo, target, how).total.computed_tokens
        for target in (tiny, EngineTarget(pool_tokens=500), EngineTarget(pool_tokens=60))
    ]
    assert totals == sorted(totals)
    assert totals[0] < totals[2]
