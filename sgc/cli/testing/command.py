"""The options of `sgc test`, sorted: who is asked, what is run, what is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sgc.cli.settings.asking import Asked
from sgc.cli.testing.running import TestsAsked, run_tests
from sgc.errors import UsageError
from sgc.runtime.executor.backends.providers.wire.addresses import SCHEMES as PROVIDERS

_LIMITS = {"max_cost": "max_cost", "prices": "prices", "rpm": "rpm", "tpm": "tpm",
           "request_timeout": "request_timeout_s"}  # fmt: skip
_OF_RUN = ("seed", "temperature", "max_tokens", "max_concurrency")


def run_command_line(
    files: tuple[Path, ...],
    engine: str | None,
    model: str | None,
    record: Path | None,
    replay: Path | None,
    **options: Any,
) -> None:
    given = {name: options.pop(name) for name in (*_LIMITS, *_OF_RUN)}
    limits = {_LIMITS[n]: given[n] for n in _LIMITS if given[n] is not None}
    if limits and not (engine or "").startswith(PROVIDERS):
        name = next(n for n in _LIMITS if given[n] is not None).replace("_", "-")
        raise UsageError(
            f"--{name} is for model providers", hint="--engine openai:MODEL or anthropic:MODEL"
        )
    if replay is not None:
        for name, value in (("--engine", engine), ("--model", model)):
            if value is not None:
                raise UsageError(f"--replay asks no model, and {name} names one")
    tells = not (options["quiet"] or options["as_json"])
    run = {name: given[name] for name in _OF_RUN if given[name] is not None}
    asked = TestsAsked(files, run_options=run, **options)
    run_tests(asked, Asked(engine, model, limits, tells), record, replay)
