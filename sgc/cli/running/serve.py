"""`sgc serve`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from sgc.runs.endpoints import require_engine


def serve(**options: Any) -> None:
    """Runs an engine's server in this process until it is stopped; exits with its code."""
    require_engine()
    from sgc.runtime.engine.config import ServerConfig
    from sgc.runtime.engine.serve import run_server

    if click.get_current_context().find_root().meta.get("sgc.debug"):
        os.environ["SGC_DEBUG"] = "1"  # the server's processes show their tracebacks
    given: dict[str, Any] = {
        key: str(value.expanduser()) if isinstance(value, Path) else value
        for key, value in options.items()
        if value is not None
    }
    sys.exit(run_server(ServerConfig(**given)))
