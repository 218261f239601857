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
