"""Runs a script that imports sglang, unmodified, as `python SCRIPT` would."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sgc.compat.sglang.importing import install
from sgc.errors import SgcError, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import set_default_backend
from sgc.runtime.executor.backends.providers.wire.addresses import SCHEMES as PROVIDER_SCHEMES


def run_script(
    path: str,
    arguments: Sequence[str] = (),
    engine: str | None = None,
    model: str | None = None,
    limits: Mapping[str, Any] | None = None,
) -> None:
    """Runs a script as `__main__` with a command line of its own.

    engine, model: the default backend, by the address of a running engine or the model of one to
    start; without either, the script chooses. limits: for an engine that is a model provider.
    Whatever the script raises is raised, SystemExit too. `sys.argv` and `sys.path` are set for the
    script and not restored.
    """
    if engine is not None and model is not None:
        raise UsageError("--model and --engine exclude each other: a running engine has its model")
    source = Path(path)
    if source.suffix == ".sgir":
        raise UsageError(f"{path}: expected a Python script, found a compiled program")
    if not source.is_file():
        raise SgcError(f"{path}: no such file")
    install()
    with ExitStack() as stack:
        if engine is not None or model is not None:
            set_default_backend(stack.enter_context(_backend(engine, model, limits or {})))
        sys.argv = [path, *arguments]
        sys.path.insert(0, str(source.resolve().parent))
        runpy.run_path(path, run_name="__main__")


def _backend(engine: str | None, model: str | None, limits: Mapping[str, Any]) -> Endpoint:
    from sgc.compat.sglang.backends.providers import Addressed
    from sgc.compat.sglang.backends.runtime_endpoint import Runtime, RuntimeEndpoint

    if engine is None:
        return Runtime(model)
    if engine.startswith(PROVIDER_SCHEMES):
        return Addressed(engine, **limits)
    return RuntimeEndpoint(engine.removeprefix("sglang+"))
