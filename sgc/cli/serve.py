"""`sgc serve`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sgc.errors import UsageError


def serve(**options: Any) -> None:
    """Runs an engine's server in this process until it is stopped; exits with its code."""
    try:
        from sgc.runtime.engine.serve import ServerConfig, run_server
    except ModuleNotFoundError as error:
        raise UsageError(
            f"running an engine needs {error.name}, which is not installed",
            hint="pip install 'sgc[engine]'",
        ) from error
    given = {key: _plain(value) for key, value in options.items() if value is not None}
    sys.exit(run_server(ServerConfig(**given)))


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value
