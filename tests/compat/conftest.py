"""The stand-in for SGLang, and a provider that it may ask."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from providers.provider_server import Ask, ProviderServer
from sglang_server import ScriptedServer

from sgc.compat.sglang import install
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import get_default_backend, set_default_backend

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def stand_in() -> Iterator[ModuleType]:
    """`sglang`, gone again afterwards; what was set as default is closed."""
    finders = list(sys.meta_path)
    yield install()
    default = get_default_backend()
    if default is not None:
        default.shutdown()
    set_default_backend(None)
    for name in [n for n in sys.modules if n.partition(".")[0] == "sglang"]:
        del sys.modules[name]
    sys.meta_path[:] = finders


@pytest.fixture
def sgl(stand_in: ModuleType) -> ModuleType:
    return stand_in


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(model="Qwen/Qwen2-7B-Instruct") as running:
        yield running


@pytest.fixture
def provider(
    stand_in: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[ProviderServer, Endpoint]]]:
    """`provider(model, reply)`: a scripted provider, and SGLang's class asking it."""
    for name in os.environ:
        if name.startswith(("OPENAI_", "ANTHROPIC_", "SGC_TOKEN")):
            monkeypatch.delenv(name)
    opened: list[tuple[ProviderServer, Endpoint]] = []

    def make(
        model: str, reply: Callable[[Ask], str], **settings: object
    ) -> tuple[ProviderServer, Endpoint]:
        server = ProviderServer(reply=reply)
        maker = "Anthropic" if model.startswith("claude") else "OpenAI"
        monkeypatch.setenv(f"{maker.upper()}_API_KEY", KEY)
        path = "/v1" if maker == "OpenAI" else ""
        monkeypatch.setenv(f"{maker.upper()}_BASE_URL", server.url + path)
        opened.append((server, getattr(stand_in, maker)(model, **settings)))
        return opened[-1]

    yield make
    for server, endpoint in opened:
        endpoint.shutdown()
        server.close()
