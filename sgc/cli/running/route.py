"""`sgc route`."""

from __future__ import annotations

from pathlib import Path

import click

from sgc.runs.endpoint import require


def route(
    engines: tuple[str, ...], file: Path | None, listen: str, token_file: Path | None
) -> None:
    """Routes requests to engines until it is stopped."""
    require(("aiohttp", "numpy"), "routing HTTP requests", "engine")
    from sgc.route.serving import RouteConfig
    from sgc.route.serving import route as run

    token = None if token_file is None else str(token_file.expanduser())
    run(RouteConfig(engines, file, listen, token), lambda line: click.echo(line, err=True))
