"""Endpoints of model providers: OpenAI, Anthropic, and servers with OpenAI's API.

No SDK is imported before an endpoint is made.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sgc.errors import UsageError
from sgc.runs.endpoint import Endpoint, require
from sgc.runtime.executor.backends.providers.connect import (
    NO_SETTINGS,
    Target,
    open_backend,
    parse_target,
    target,
)
from sgc.runtime.executor.backends.providers.wire.limits import LimitSettings
from sgc.runtime.executor.backends.providers.wire.settings import SdkSettings, sort_settings
from sgc.runtime.executor.interface.backend import Backend
from sgc.runtime.executor.run.loop import shared

if TYPE_CHECKING:
    from sgc.runtime.executor.backends.providers.batched import Batching


class ProviderEndpoint(Endpoint):
    """A provider's model. Errors in the settings, such as a missing key, are raised at once.

    settings: `max_concurrency`, `rpm`, `tpm`, `request_timeout_s` (of one attempt), `max_cost` (US
    dollars for all requests of this endpoint), and settings of the provider's SDK:
    `default_headers`, `default_query`, `http_client`, `timeout` and, for OpenAI's, `organization`
    and `project` for its client; `extra_headers`, `extra_query` and `extra_body` for each request.
    prices: a file that replaces the table of prices. batching: requests go through the provider's
    batch API.
    """

    def __init__(
        self,
        target: Target,
        prices: str | Path | None = None,
        batching: Batching | None = None,
        **settings: Any,
    ) -> None:
        limits, sdk = sort_settings(target.provider, settings)
        if prices is not None and not isinstance(prices, (str, Path)):
            raise UsageError(f"prices must be a file's name, found {type(prices).__name__}")
        path = None if prices is None else Path(prices)
        super().__init__(shared.run(open_provider(target, limits, path, sdk, batching)))


async def open_provider(
    target: Target,
    settings: LimitSettings,
    prices: Path | None = None,
    sdk: SdkSettings = NO_SETTINGS,
    batching: Batching | None = None,
) -> Backend:
    """Opens a provider's backend; to be called on the loop that it will live on.

    Raises SgcError if the provider's SDK is not installed.
    """
    package = "anthropic" if target.provider == "anthropic" else "openai"
    require((package, "regex", "jsonschema"), f"asking {target.provider}", package)
    return await open_backend(target, settings, prices, sdk, batching)


class _OfProvider(ProviderEndpoint):
    """A provider's model by name."""

    _provider: ClassVar[str]

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        options: dict[str, str] | None = None,
        prices: str | Path | None = None,
        **settings: Any,
    ) -> None:
        found = target(self._provider, model, options or {}, base_url, api_key)
        super().__init__(found, prices, **settings)


class OpenAI(_OfProvider):
    """A model of OpenAI, or, with base_url, of a server that stands in for OpenAI.

    The default key is that of OPENAI_API_KEY, but only for OpenAI and OPENAI_BASE_URL; another
    base_url gets SGC_TOKEN's. options: `api`, `select`, `prefill`, `effort`, `like`, `stream`,
    `cache`, `cache_ttl` (docs/providers.md). For vLLM, SGLang, Ollama or llama.cpp use
    `sgc.connect("openai+http://HOST:PORT/v1#MODEL")`, which finds out what the server can do.
    """

    _provider = "openai"


class Anthropic(_OfProvider):
    """A model of Anthropic; the default key is that of ANTHROPIC_API_KEY, as with `OpenAI`."""

    _provider = "anthropic"


def connect_provider(
    uri: str,
    token: str | None = None,
    prices: str | Path | None = None,
    batching: Batching | None = None,
    **settings: Any,
) -> ProviderEndpoint:
    """Connects to a provider's address; see `parse_target`."""
    return ProviderEndpoint(parse_target(uri, token), prices, batching, **settings)
