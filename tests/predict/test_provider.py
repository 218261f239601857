"""Estimates for providers, held against runs on scripted ones: requests, tokens and money."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from predict.provider_programs import PROGRAMS, Script, ScriptedApi, rows

from sgc.errors import UsageError
from sgc.predict.dry.dry_run import Row
from sgc.predict.dry.samples import Samples
from sgc.predict.dry.totals import Total, measured
from sgc.predict.predict import Expecting, at_most, expected
from sgc.predict.targets import ProviderTarget
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.providers.backend import ProviderBackend
from sgc.runtime.executor.backends.providers.wire.limits import LimitSettings
from sgc.runtime.executor.log.run_log import RunLog
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.options import RunOptions

MODELS = {"gpt-4o": "openai", "claude-sonnet-4-5": "anthropic"}
SEED = 7
OPTIONS = RunOptions(seed=SEED)
CANNOT = {("ahead", "gpt-4o")}  # a whole message begins otherwise than the script says
N_FEW, N_ROWS = 20, 220


def cases() -> list[tuple[str, str]]:
    return [(p, m) for p in PROGRAMS for m in MODELS if (p, m) not in CANNOT]


def scripted(model: str) -> Endpoint:
    """A provider in this process."""
    facts = ProviderTarget(f"{MODELS[model]}:{model}").facts

    async def make() -> ProviderBackend:
        return ProviderBackend(ScriptedApi(Script()), facts, LimitSettings())

    return Endpoint(shared.run(make()))


def run(program: Any, endpoint: Endpoint, given: list[dict[str, Any]], log: Path) -> Total:
    """What a batch really used, by its log."""
    with RunLog.open(log) as written:
        states = program.run_batch(given, backend=endpoint, log=written, seed=SEED)
        assert [state.error() for state in states] == [None] * len(given)
    with RunLog.read(log) as found:
        return measured(found).total


def check(name: str, model: str, make: Callable[[], Endpoint], n: int, folder: Path) -> None:
    """Holds the estimate of n rows, made from N_FEW of them, against their run."""
    program, given = PROGRAMS[name].compile(opt_level=1, check=False), rows(n)
    run(program, make(), given[:N_FEW], folder / "few.log")
    actual = run(program, make(), given, folder / "all.log")
    target = ProviderTarget(f"{MODELS[model]}:{model}")
    todo = [Row(str(key), row) for key, row in enumerate(given)]
    with RunLog.read(folder / "few.log") as few:
        samples = Samples(few, program.graph)
        found = expected(program.graph, todo, target, Expecting(OPTIONS), samples).total
    for field in ("requests", "prompt_tokens", "completion_tokens", "cost_usd"):
        assert getattr(found, field) == pytest.approx(getattr(actual, field), rel=0.1), field
    most = at_most(program.graph, todo, target, OPTIONS, math.inf)
    assert actual.requests <= most.requests
    assert actual.prompt_tokens <= most.prompt_tokens < math.inf
    assert actual.completion_tokens <= most.completion_tokens
    assert actual.cost_usd is not None
    assert actual.cost_usd <= most.money < math.inf


def on_one_model_each() -> Iterator[Any]:
    """All cases; those of a program that another model has too are slow."""
    for number, name in enumerate(PROGRAMS):
        models = [model for program, model in cases() if program == name]
        for model in models:
            is_soon = model == models[number % len(models)]
            yield pytest.param(name, model, marks=() if is_soon else pytest.mark.slow)


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "model"), on_one_model_each())
def test_expected_within_a_tenth_and_never_above_the_ceiling(
    tmp_path: Path, name: str, model: str
) -> None:
    check(name, model, lambda: scripted(model), N_ROWS, tmp_path)


@pytest.mark.parametrize(
    ("name", "model", "n"),
    [
        ("checked", "gpt-4o", 24),
        *[pytest.param(*case, N_ROWS, marks=pytest.mark.slow) for case in cases()],
    ],
)
@pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")
def test_the_same_over_http(
    serve: Callable[..., Any], ask: Callable[..., Any], tmp_path: Path, name: str, model: str,
    n: int,
) -> None:  # fmt: skip
    def make() -> Endpoint:
        script = Script()
        return ask(serve(reply=script.answer, prefer=script.choose), model)

    check(name, model, make, n, tmp_path)


def test_a_model_without_prices_may_be_one_that_is_misspelt() -> None:
    with pytest.raises(UsageError, match=r"no prices of gpt4o are known. Did you mean 'gpt-4o'\?"):
        ProviderTarget("openai:gpt4o")
