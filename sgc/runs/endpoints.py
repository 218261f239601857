"""Where programs run: endpoints made from URIs, an embedded engine, and the default one.

gRPC and engines are not imported before an endpoint is first used.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sgc.core.session import current_session
from sgc.errors import UsageError, closest
from sgc.runs.endpoint import Endpoint, require
from sgc.runs.providers import connect_provider
from sgc.runtime.executor.backends.providers.wire.addresses import SCHEMES as PROVIDER_SCHEMES
from sgc.runtime.executor.backends.providers.wire.addresses import VENDORS
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.run.loop import shared

SCHEMES = ("grpc://", "grpcs://", "unix:")
RECONNECT_S = 120.0
_OF_ENGINES = frozenset({"request_timeout_s", "reconnect_s"})
SGLANG_SCHEMES = ("sglang+http://", "sglang+https://")


class RemoteEngine(Endpoint):
    """An engine that is already running, at `grpc://host:port` or `unix:path`."""

    def __init__(
        self,
        uri: str,
        token: str | None = None,
        request_timeout_s: float | None = None,
        reconnect_s: float = RECONNECT_S,
    ) -> None:
        """request_timeout_s: how long the engine may take for one request. reconnect_s: how long to
        wait for an engine that is gone; unanswered requests are then sent again."""
        if not uri.startswith(SCHEMES):
            raise UsageError(
                f"unknown engine address {uri!r}{_meant(uri)}",
                hint="use grpc://HOST:PORT or unix:PATH, or leave it out for an embedded engine",
            )
        limits = {"request_timeout_s": request_timeout_s, "reconnect_s": reconnect_s}
        super().__init__(_connect(uri, token, **limits))
        self.uri = uri


class RuntimeEndpoint(Endpoint):
    """A running server by its URL: SGLang's own at `http://…`, or an engine of ours.

    Asks at once which model it serves, and raises EngineUnavailable if nobody answers.
    chat_template_name: a template from the table of named ones, instead of the one chosen by the
    model's name. verify: a file of certificates to trust, for https.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        verify: str | None = None,
        chat_template_name: str | None = None,
    ) -> None:
        self.base_url = base_url
        if base_url.startswith(SCHEMES):
            super().__init__(_connect(base_url, api_key))
        elif base_url.startswith(("http://", "https://")):
            super().__init__(_connect_sglang(base_url, api_key, verify, chat_template_name))
        else:
            raise UsageError(
                f"unknown server address {base_url!r}",
                hint="use http://HOST:PORT of an SGLang server, or grpc://HOST:PORT",
            )
        try:
            self._model_info = {"model_path": self._capabilities().model}
        except BaseException:
            self.shutdown()
            raise
        # Scripts do not close it, and may drop it while runs still use its connections.
        atexit.register(self.shutdown)

    @property
    def model_info(self) -> dict[str, Any]:
        told = getattr(self.backend, "model_info", None)
        return {**self._model_info, **(told or {})}


class Engines(Endpoint):
    """Several engines of one model as one: each request goes where its prompt is cached, and to
    another engine if that one does not answer (docs/routing.md).

    uris: their addresses, as `RemoteEngine` and `sglang+http://…` have them. At least one answers,
    or EngineUnavailable is raised when the first program runs.
    """

    def __init__(
        self,
        uris: Sequence[str],
        token: str | None = None,
        request_timeout_s: float | None = None,
        reconnect_s: float = RECONNECT_S,
    ) -> None:
        """request_timeout_s: how long an engine may take for one request. reconnect_s: how long to
        wait for engines when all are gone."""
        if len(set(uris)) < len(uris):
            raise UsageError(f"an engine is named twice: {', '.join(uris)}")
        for uri in uris:
            if not uri.startswith((*SCHEMES, *SGLANG_SCHEMES)):
                raise UsageError(
                    f"{uri!r} is no engine that others can share requests with",
                    hint="use grpc://HOST:PORT, unix:PATH or sglang+http://HOST:PORT",
                )
        from sgc.runtime.executor.backends.routed import Routed

        engines = {uri: _shared_engine(uri, token, request_timeout_s) for uri in uris}
        super().__init__(Routed(engines, reconnect_s))


def _shared_engine(uri: str, token: str | None, request_timeout_s: float | None) -> Backend:
    if uri.startswith(SGLANG_SCHEMES):
        return _connect_sglang(uri.removeprefix("sglang+"), token, None, None)
    return _connect(uri, token, request_timeout_s=request_timeout_s)


# The comma between addresses; a socket's path may contain another comma.
_BETWEEN = re.compile(r",(?=grpcs?://|unix:|sglang\+https?://)")


def addresses_in(uri: str) -> list[str]:
    """The addresses that commas separate."""
    return _BETWEEN.split(uri)


def connect(uri: str, token: str | None = None, **limits: Any) -> Endpoint:
    """Connects to an address: `grpc://…`, `grpcs://…`, `unix:…` or `sglang+http://…`.

    Several engines of one model are separated by commas (`Engines`).
    `openai:MODEL`, `anthropic:MODEL` and `openai+http://HOST:PORT/v1#MODEL` are model providers;
    only they take limits, such as max_cost (docs/providers.md), except for request_timeout_s and
    reconnect_s, which our engine takes.
    """
    if uri.startswith(PROVIDER_SCHEMES):
        return connect_provider(uri, token, **limits)
    if uri.startswith(SCHEMES) and not limits.keys() - _OF_ENGINES:
        if len(uris := addresses_in(uri)) > 1:
            return Engines(uris, token, **limits)
        return RemoteEngine(uri, token, **limits)
    if limits:
        name = next(iter(sorted(limits.keys() - _OF_ENGINES)), "request_timeout_s")
        raise UsageError(f"{name} is for model providers, and {uri} is none")
    if len(uris := addresses_in(uri)) > 1:
        return Engines(uris, token)
    if uri.startswith(SGLANG_SCHEMES):
        return RuntimeEndpoint(uri.removeprefix("sglang+"), token)
    raise UsageError(
        f"unknown engine address {uri!r}{_meant(uri)}",
        hint="use grpc://HOST:PORT, unix:PATH, sglang+http://HOST:PORT, openai:MODEL, "
        "anthropic:MODEL or openai+http://HOST:PORT/v1#MODEL, or leave it out for an embedded "
        "engine",
    )


def _meant(uri: str) -> str:
    """The scheme that may have been meant: `opnai:gpt-4o`."""
    return closest(uri.partition(":")[0] + ":", [*VENDORS, "grpc:", "grpcs:", "unix:"])


class Runtime(Endpoint):
    """An engine of our own: a child process on a private socket, stopped with this one.

    model_path: a Hugging Face folder or id, "fake", or None for the default model; settings:
    the options of `sgc serve`, with underscores, and several of one as a dict. Blocks until the
    model is loaded.
    """

    def __init__(self, model_path: str | None = None, **settings: Any) -> None:
        require_engine()
        from sgc.runtime.engine.launch import EmbeddedEngine

        self._engine = EmbeddedEngine(model_path, serve_arguments(settings))
        self._engine.start(meanwhile=_import_client)
        try:
            super().__init__(_connect(self._engine.uri, None))
        except BaseException:
            self._engine.stop()
            raise

    @property
    def is_running(self) -> bool:
        return self._engine.is_running

    def shutdown(self) -> None:
        """Closes the connection and ends the engine's processes; does nothing in a forked child."""
        if not self.is_own:
            return
        try:
            super().shutdown()
        finally:
            self._engine.stop()


_ENGINE_NEEDS = ("grpc", "grpc_health", "jinja2", "numpy", "safetensors", "tokenizers")


def require_engine() -> None:
    """Raises SgcError if an engine's packages are not installed."""
    require(_ENGINE_NEEDS, "running an engine here", "engine")


def _import_client() -> None:
    """Imports what `_connect` needs, while the engine starts."""
    import sgc.runtime.executor.backends.engine.backend  # noqa: F401


def _connect(uri: str, token: str | None, **settings: Any) -> Backend:
    require(("grpc",), "talking to an engine", "grpc")
    from sgc.runtime.executor.backends.engine.backend import EngineBackend

    return shared.run(_made(EngineBackend, uri, token, **settings))


def _connect_sglang(
    url: str, api_key: str | None, verify: str | None, template: str | None
) -> Backend:
    require(("aiohttp",), "talking to an SGLang server", "http")
    from sgc.runtime.executor.backends.sglang.backend import SGLangBackend

    return shared.run(
        _made(SGLangBackend, url, api_key=api_key, chat_template=template, verify=verify)
    )


async def _made(kind: Callable[..., Backend], *args: Any, **settings: Any) -> Backend:
    """Makes a backend on the loop that it will live on."""
    return kind(*args, **settings)


def serve_arguments(settings: Mapping[str, Any]) -> list[str]:
    """Settings as `sgc serve` options: `pool_tokens=9` is `--pool-tokens 9`, and
    `adapter={"sql": folder}` is `--adapter sql=FOLDER`."""
    arguments: list[str] = []
    for name, value in settings.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(option)
        elif isinstance(value, Mapping):
            for key, each in value.items():
                arguments += [option, f"{key}={each}"]
        elif value is not None and value is not False:
            arguments += [option, str(value)]
    return arguments


MAX_WRAPPERS = 8
_lock = threading.Lock()
_default: Endpoint | None = None


def _forget_default() -> None:
    """Drops the default in a forked child: connections and engines are the parent's."""
    global _lock, _default
    _lock, _default = threading.Lock(), None


os.register_at_fork(after_in_child=_forget_default)


def set_default_backend(endpoint: Any) -> None:
    """Sets the endpoint of runs that name none; None restores the embedded engine."""
    global _default
    with _lock:
        _default = None if endpoint is None else as_endpoint(endpoint)


def get_default_backend() -> Endpoint | None:
    """The default endpoint; None if none was set and no embedded engine was started."""
    return _default


def flush_cache(backend: Any = None) -> int:
    """Drops unused cached prefixes at the given or the default endpoint."""
    return resolve_backend(backend).flush_cache()


def get_server_info(backend: Any = None) -> dict[str, Any]:
    """The description that the server at the given or the default endpoint gives of itself."""
    return resolve_backend(backend).get_server_info()


_Adapter = Callable[[Any], Endpoint | None]
_adapters: list[_Adapter] = []


def take_also(adapt: _Adapter) -> _Adapter:
    """Registers an adapter for `as_endpoint`, which makes endpoints of other packages' objects.

    adapt: returns None for objects that it does not know.
    """
    _adapters.append(adapt)
    return adapt


def as_endpoint(given: Any) -> Endpoint:
    """The endpoint that an object stands for: itself, its `.endpoint`, or what an adapter makes.

    Raises UsageError for anything else.
    """
    for _ in range(MAX_WRAPPERS):
        if isinstance(given, Endpoint) or not hasattr(given, "endpoint"):
            break
        given = given.endpoint
    if isinstance(given, Endpoint):
        return given.as_asked()
    for adapt in _adapters:
        found = adapt(given)
        if found is not None:
            return found
    raise UsageError(
        f"backend must be an endpoint, found {given!r}",
        hint='e.g. sgc.RuntimeEndpoint("http://127.0.0.1:30000"), sgc.Runtime(model), or an object '
        "with SGLang's generate(s, sampling_params) and get_chat_template()",
    )


def resolve_backend(endpoint: Any) -> Endpoint:
    """The given endpoint, else the default one, else a new embedded engine, which is kept."""
    global _default
    session = current_session()
    if session is not None:
        session.refuse_other_runs()
    if endpoint is not None:
        return as_endpoint(endpoint)
    with _lock:
        if isinstance(_default, Runtime) and not _default.is_running:
            _default = None  # it was shut down or died: start another
        if _default is None:
            _default = Runtime()
            atexit.register(_default.shutdown)
        return _default
