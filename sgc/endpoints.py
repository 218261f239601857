"""Where programs run: endpoints made from URIs, an embedded engine, and the default one.

Nothing of gRPC or an engine is imported before an endpoint is first used.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import threading
from collections.abc import Mapping
from typing import Any

from sgc.errors import SgcError, UsageError
from sgc.runtime.executor.backend import Backend
from sgc.runtime.executor.loop import shared
from sgc.session import current_session

SCHEMES = ("grpc://", "grpcs://", "unix:")


class Endpoint:
    """A backend to run programs on, for synchronous and asynchronous callers alike."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def flush_cache(self) -> int:
        """Drops cached prefixes that nothing uses; gives the tokens freed."""
        return int(shared.run(self.backend.flush_cache()))  # type: ignore[attr-defined]

    def shutdown(self) -> None:
        """Closes the connection."""
        shared.run(self.backend.close())

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *exc: object) -> None:
        self.shutdown()


class RemoteEngine(Endpoint):
    """An engine that is already running, at `grpc://host:port` or `unix:path`."""

    def __init__(self, uri: str, token: str | None = None) -> None:
        if not uri.startswith(SCHEMES):
            raise UsageError(
                f"unknown engine address {uri!r}",
                hint="use grpc://HOST:PORT or unix:PATH, or leave it out for an embedded engine",
            )
        super().__init__(_connect(uri, token))
        self.uri = uri


class Runtime(Endpoint):
    """An engine of our own: a child process on a private socket, stopped with this one.

    model_path: a Hugging Face folder or id, "fake", or None for the default model; settings
    are those of `sgc serve`, with underscores. Blocks until the model is loaded.
    """

    def __init__(self, model_path: str | None = None, **settings: Any) -> None:
        require_engine()
        from sgc.runtime.engine.launch import EmbeddedEngine

        self._engine = EmbeddedEngine(model_path, _serve_arguments(settings))
        self._engine.start()
        try:
            super().__init__(_connect(self._engine.uri, None))
        except BaseException:
            self._engine.stop()
            raise

    @property
    def is_running(self) -> bool:
        return self._engine.is_running

    def shutdown(self) -> None:
        """Closes the connection and ends the engine's processes."""
        try:
            super().shutdown()
        finally:
            self._engine.stop()


_ENGINE_NEEDS = ("grpc", "grpc_health", "jinja2", "numpy", "safetensors", "tokenizers")


def require_engine() -> None:
    """Raises SgcError if an engine's packages are not installed."""
    _require(_ENGINE_NEEDS, "running an engine here", "engine")


def _require(modules: tuple[str, ...], what: str, extra: str) -> None:
    """Says which extra to install, before an import deep inside fails."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise SgcError(
            f"{what} needs packages that are not installed: {', '.join(missing)}",
            hint=f"pip install 'sgc[{extra}]'",
        )


def _connect(uri: str, token: str | None) -> Backend:
    _require(("grpc",), "talking to an engine", "grpc")
    from sgc.runtime.executor.engine_backend import EngineBackend

    async def make() -> Backend:
        # Made on the loop that it will live on.
        backend: Backend = EngineBackend(uri, token=token)
        return backend

    return shared.run(make())


def _serve_arguments(settings: Mapping[str, Any]) -> list[str]:
    """Settings as `sgc serve` options: `pool_tokens=9` is `--pool-tokens 9`."""
    arguments: list[str] = []
    for name, value in settings.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(option)
        elif value is not None and value is not False:
            arguments += [option, str(value)]
    return arguments


_lock = threading.Lock()
_default: Endpoint | None = None


def _forget_default() -> None:
    """In a forked child: connections and engines are the parent's."""
    global _lock, _default
    _lock, _default = threading.Lock(), None


os.register_at_fork(after_in_child=_forget_default)


def set_default_backend(endpoint: Endpoint | None) -> None:
    """The endpoint of runs that name none; None goes back to an embedded engine."""
    global _default
    with _lock:
        _default = endpoint


def resolve_backend(endpoint: Endpoint | None) -> Endpoint:
    """The given endpoint, else the default one, else an embedded engine made now and kept."""
    global _default
    session = current_session()
    if session is not None:
        session.refuse_other_runs()
    if endpoint is not None:
        if not isinstance(endpoint, Endpoint):
            raise UsageError(
                f"backend must be an sgc.Runtime or sgc.RemoteEngine, found {endpoint!r}",
                hint='e.g. sgc.RemoteEngine("grpc://127.0.0.1:30100")',
            )
        return endpoint
    with _lock:
        if isinstance(_default, Runtime) and not _default.is_running:
            _default = None  # it was shut down or died: begin anew
        if _default is None:
            _default = Runtime()
            atexit.register(_default.shutdown)
        return _default
