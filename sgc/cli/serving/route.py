"""`sgc route`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sgc.runs.endpoint import require


def route(
    engines: tuple[str, ...],
    file: Path | None,
    listen: str,
    over_grpc: str,
    token_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Routes requests to engines until it is stopped."""
    require(("aiohttp", "numpy", "grpc"), "routing requests", "engine")
    from sgc.route.serving import Named, RouteConfig
    from sgc.route.serving import route as run

    tokens, cert, key = (
        None if p is None else str(p.expanduser()) for p in (token_file, tls_cert, tls_key)
    )
    if over_grpc.isdigit():
        over_grpc = f"127.0.0.1:{over_grpc}"
    config = RouteConfig(
        Named(engines, file), listen, tokens, first_token(tokens),
        "" if over_grpc == "off" else over_grpc, cert, key,
    )  # fmt: skip
    run(config, lambda line: click.echo(line, err=True))


def first_token(token_file: str | None) -> str:
    """A token that the engines accept too, for the router's own requests; "" for none. A TOML file
    may have only the digests of tokens."""
    if token_file is None:
        return os.environ.get("SGC_TOKEN", "")
    if token_file.endswith(".toml"):
        return ""
    try:
        lines = Path(token_file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""  # the next reader of the tokens reports it
    return next((w for each in lines if (w := each.strip()) and not w.startswith("#")), "")
