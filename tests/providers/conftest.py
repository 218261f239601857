"""Scripted providers, and endpoints that ask them through the real SDKs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from providers.provider_server import ProviderServer

import sgc
from sgc.runs.providers import ProviderEndpoint

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def serve() -> Iterator[Callable[..., ProviderServer]]:
    """Makes servers that end with the test."""
    servers = []

    def make(**settings: Any) -> ProviderServer:
        servers.append(ProviderServer(**settings))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def ask() -> Iterator[Callable[..., ProviderEndpoint]]:
    """Makes an endpoint for a server: `ask(server, "gpt-4o", max_cost=1)`.

    The server stands for the provider itself: what is known of the model counts.
    """
    endpoints = []

    def make(server: ProviderServer, model: str, **settings: Any) -> ProviderEndpoint:
        if not model.startswith("served"):
            settings["options"] = {"like": model, **(settings.get("options") or {})}
        if model.startswith("claude"):
            found: ProviderEndpoint = sgc.Anthropic(
                model, base_url=server.url, api_key=KEY, **settings
            )
        elif model.startswith("served"):
            found = sgc.connect(f"openai+{server.url}/v1#{model}", **settings)  # type: ignore[assignment]
        else:
            found = sgc.OpenAI(model, base_url=server.url + "/v1", api_key=KEY, **settings)
        endpoints.append(found)
        return found

    yield make
    for endpoint in endpoints:
        endpoint.shutdown()


@pytest.fixture
def place(tmp_path: Any, monkeypatch: Any, capsys: Any) -> Any:
    """Makes a server with batches, and `run(model, *options)` of a job on it."""
    from providers.batch_child import shorten
    from providers.batch_jobs import N_ROWS, PROGRAM, Folder, environ_of, run_here
    from providers.batch_server import BatchServer

    from sgc.runtime.executor.backends.providers.batches import (
        running,
        stages,
        submitting,
        watching,
    )

    servers = []
    for module, names in (
        (watching, ("FIRST_POLL_S", "LONGEST_POLL_S")),
        (running, ("WAIT_S", "FULL_WAIT_S")),
        (submitting, ("SETTLE_S", "FIRST_WAIT_S")),
        (stages, ("LINGER_S", "MAX_BYTES")),
    ):
        for name in names:  # so that they are put back
            monkeypatch.setattr(module, name, getattr(module, name))
    shorten()

    def make(n_rows: int = N_ROWS, program: str = PROGRAM, **settings: Any) -> Any:
        server = BatchServer(**settings)
        servers.append(server)
        for name, value in environ_of(server).items():
            monkeypatch.setenv(name, value)
        folder = Folder(tmp_path, n_rows, program)

        def run(model: str, *more: str, **how: Any) -> Any:
            return run_here(folder, capsys, model, *more, **how)

        run.folder = folder  # type: ignore[attr-defined]
        return server, run

    yield make
    for server in servers:
        server.close()
        assert server.wrong == [] or hasattr(server, "may_be_wrong")
