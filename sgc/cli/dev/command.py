"""The options of `sgc dev`, as `sgc run` takes them."""

from __future__ import annotations

from typing import Any

import click

from sgc.cli.settings.asking import DEMO_NOTE
from sgc.errors import UsageError
from sgc.runs.endpoint import require

_PASSED_ON = ("temperature", "max_tokens", "max_cost")


def dev(
    target: str,
    engine: str | None,
    model: str | None,
    json_args: str | None,
    single_args: tuple[str, ...],
    seed: int,
    port: int,
    opens: bool,
    tools: tuple[str, ...],
    interpret: bool,
    **passed_on: Any,
) -> None:
    """Serves the page until Ctrl-C."""
    if engine is not None and model is not None:
        raise UsageError("--model and --engine exclude each other: a running engine has its model")
    options = ["--interpret"] if interpret else []
    for each in tools:
        options += ["--tools", each]
    for name in _PASSED_ON:
        if passed_on[name] is not None:
            options += [f"--{name.replace('_', '-')}", str(passed_on[name])]
    require(("aiohttp",), "the page of sgc dev", "engine")
    from sgc.cli.dev.develop import DevAsked, develop, source_of
    from sgc.cli.programs.loading import Given

    source_of(target)
    given = Given.read(json_args, single_args, None)
    if engine is None and model is None:
        click.echo(DEMO_NOTE, err=True)
    asked = DevAsked(target, engine, model, given, tuple(options), seed, port, opens)
    develop(asked, lambda line: click.echo(f"sgc: {line}", err=True))
