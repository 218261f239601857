"""`sgc serve`."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sgc.cli.common import DEBUG
from sgc.errors import UsageError
from sgc.runs.endpoints import require_engine

DEFAULT_PORT = 30000  # of --host without --port

if TYPE_CHECKING:
    from sgc.services.routes import ProgramRoutes


def serve(
    program: tuple[str, ...] = (),
    tools: tuple[str, ...] = (),
    max_programs: int = 0,
    named_model: str | None = None,
    host: str | None = None,
    port: int | None = None,
    ray: str | None = None,
    ray_address: str | None = None,
    ray_cpus: float | None = None,
    ray_gpus: float | None = None,
    **options: Any,
) -> None:
    """Runs an engine's server in this process until it is stopped; exits with its code."""
    if named_model is not None:
        if options["model"] is not None:
            raise UsageError(f"--model {options['model']} and the argument {named_model}: name one")
        options["model"] = named_model
    options["http"] = _http(options["http"], host, port)
    if ray is not None:
        from sgc.cli.serving.on_ray import RayAsked, serve_on_ray

        cpus = 1.0 if ray_cpus is None else ray_cpus
        served = RayAsked(ray, ray_address, cpus, ray_gpus or 0.0)
        serve_on_ray(served, options["model"], options["http"], options["token_file"])
        return
    if ray_address is not None or ray_cpus is not None or ray_gpus is not None:
        raise UsageError("--ray-address, --ray-cpus and --ray-gpus are for --ray N")
    require_engine()
    if program and options["http"] == "off":
        raise UsageError("--program serves programs over HTTP", hint="add --http PORT")
    if tools and not program:
        raise UsageError("--tools are what programs may call", hint="add --program FILE.sgir")
    from sgc.runtime.engine.config import ServerConfig
    from sgc.runtime.engine.serve import run_server

    if click.get_current_context().find_root().meta.get(DEBUG):
        os.environ["SGC_DEBUG"] = "1"  # the server's processes show their tracebacks
    given: dict[str, Any] = {
        key: str(value.expanduser()) if isinstance(value, Path) else value
        for key, value in options.items()
        if value is not None
    }
    beside = partial(_programs, program, tools, max_programs) if program else None
    sys.exit(run_server(ServerConfig(**given, tells=True), beside))


def _http(http: str, host: str | None, port: int | None) -> str:
    """The address of `--http`, or of `--host` and `--port`."""
    if host is None and port is None:
        return http
    if http != "off":
        raise UsageError(f"--http {http} and --host or --port: give one", hint="--http HOST:PORT")
    return f"{host or '127.0.0.1'}:{DEFAULT_PORT if port is None else port}"


def _programs(targets: tuple[str, ...], tools: tuple[str, ...], max_runs: int) -> ProgramRoutes:
    from sgc.cli.programs.source import load_tools
    from sgc.services.programs import Programs
    from sgc.services.routes import ProgramRoutes

    return ProgramRoutes(Programs(targets, load_tools(tools), max_runs))
