"""Opens backends by a provider's name or an address: keys, the environment, a server's models.

Keys come from the caller or the environment and stay in the SDK's client: no artifact, log or error
contains them. Wrong settings are found here, before any request.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from sgc.errors import BackendError, EngineUnavailable, UsageError
from sgc.runtime.executor.backends.providers.models.models import (
    Choices,
    Facts,
    facts_for,
    parse_choices,
)
from sgc.runtime.executor.backends.providers.models.prices import Prices, read_prices
from sgc.runtime.executor.backends.providers.wire.addresses import (
    COMPATIBLE,
    SCHEMES,
    VENDORS,
    address_of,
    checked_address,
    is_trusted,
    is_vendors,
)
from sgc.runtime.executor.backends.providers.wire.limits import LimitSettings
from sgc.runtime.executor.backends.providers.wire.settings import SdkSettings, check_settings
from sgc.runtime.executor.interface.backend import Backend

if TYPE_CHECKING:
    from sgc.runtime.executor.backends.providers.batched import Batching

WRONG_ADDRESS = (
    "the address of a server like OpenAI's is openai+http://HOST:PORT/v1#MODEL?OPTION=VALUE"
)
WRONG_BASE_URL = "base_url, or {}_BASE_URL, must be a URL of http or https"
NO_SETTINGS = SdkSettings()
NO_KEY = "no-key"  # sent to a server that needs no key


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go. provider: openai, anthropic or compatible; key: never shown.

    base_url: the server's address.
    """

    provider: str
    model: str
    choices: Choices
    base_url: str
    key: str = field(default="", repr=False)

    @property
    def is_vendors(self) -> bool:
        """Whether requests go to the provider itself, not to another server with its API."""
        return self.provider != "compatible" and is_vendors(self.provider, self.base_url)

    def facts(self, owned_by: str = "") -> Facts:
        """The facts of the model on this server. owned_by: as a compatible server reports it."""
        return facts_for(self.provider, self.model, self.choices, owned_by, self.is_vendors)


def is_provider(uri: str) -> bool:
    return uri.startswith(SCHEMES)


def parse_target(uri: str, key: str | None = None) -> Target:
    """Parses `openai:MODEL`, `anthropic:MODEL` or `openai+http://HOST:PORT/v1#MODEL`, each with
    `?OPTION=VALUE`; raises UsageError for anything else, or if a key is missing.
    """
    if uri.startswith(COMPATIBLE):
        return _compatible(uri, key)
    provider, _, rest = uri.partition(":")
    model, _, query = rest.partition("?")
    return target(provider, model, _options(query), key=key)


def facts_of(uri: str) -> Facts:
    """The facts of `openai:MODEL` or `anthropic:MODEL`, without a key or a request."""
    _, _, rest = uri.partition(":")
    if not uri.startswith(VENDORS) or not rest.partition("?")[0]:
        raise UsageError(
            f"expected a provider's model, found {uri!r}", hint="openai:MODEL or anthropic:MODEL"
        )
    return parse_target(uri, NO_KEY).facts()


def target(
    provider: str,
    model: str,
    options: Mapping[str, str],
    base_url: str | None = None,
    key: str | None = None,
) -> Target:
    """A model of OpenAI or Anthropic, or of a server with their API at base_url.

    Without a key, the environment's is used (`environment_key`).
    """
    if not model or not isinstance(model, str):
        raise UsageError(f"no model is named in {provider}:", hint=f"{provider}:MODEL")
    key = key or environment_key(provider, base_url)
    if not key:
        raise UsageError(
            f"no API key for {provider}",
            hint=f"set {_key_variable(provider)}; it is read from the environment, and by the "
            "command line from a file with --env-file",
        )
    wrong = WRONG_BASE_URL.format(provider.upper())
    address = checked_address(address_of(provider, base_url), wrong)
    return Target(provider, model, parse_choices(options), address, checked_key(key))


def environment_key(provider: str, base_url: str | None) -> str:
    """The environment's key for a server. The provider's key goes only to the provider or to the
    address in its _BASE_URL variable. Another server, which a program may name as base_url, gets
    SGC_TOKEN, or NO_KEY.
    """
    if is_trusted(provider, base_url):
        return os.environ.get(_key_variable(provider), "")
    return os.environ.get("SGC_TOKEN", "") or NO_KEY


def _key_variable(provider: str) -> str:
    return f"{provider.upper()}_API_KEY"


def _compatible(uri: str, key: str | None) -> Target:
    address, _, rest = uri.removeprefix("openai+").partition("#")
    base_url = checked_address(address, WRONG_ADDRESS)
    model, _, query = rest.partition("?")
    key = checked_key(key or os.environ.get("SGC_TOKEN", "") or environment_key("openai", base_url))
    is_own = bool(model) and is_vendors("openai", base_url)
    provider = "openai" if is_own else "compatible"
    return Target(provider, model, parse_choices(_options(query)), base_url, key)


def _options(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise UsageError(f"{query!r} must be OPTION=VALUE&…") from error
    if len(dict(pairs)) < len(pairs):
        raise UsageError(f"{query!r} gives an option twice")
    return dict(pairs)


def checked_key(key: str) -> str:
    is_text = isinstance(key, str) and key.isascii() and key.isprintable()
    if not is_text or " " in key:
        raise UsageError("an API key must be printable ASCII characters")
    return key


async def open_backend(
    target: Target,
    settings: LimitSettings,
    prices: Path | None = None,
    sdk: SdkSettings = NO_SETTINGS,
    batching: Batching | None = None,
) -> Backend:
    """Opens the backend; asks a compatible server for its models. batching: None to ask at once."""
    # Endpoints are named in every program; only those that are opened need what asks them.
    from sgc.runtime.executor.backends.providers.backend import MAX_IN_FLIGHT, ProviderBackend

    check_settings(settings)
    n_room = settings.max_concurrency or MAX_IN_FLIGHT
    timeout_s = settings.request_timeout_s
    api: Any
    if target.provider == "anthropic":
        from sgc.runtime.executor.backends.providers.anthropic.api import AnthropicApi

        api = AnthropicApi(target.base_url, target.key, timeout_s, n_room, sdk)
    else:
        from sgc.runtime.executor.backends.providers.openai.api import OpenAIApi

        is_own = target.provider == "openai" and is_trusted("openai", target.base_url)
        api = OpenAIApi(target.base_url, target.key, timeout_s, n_room, is_own, sdk)
    try:
        owner = ""
        if target.provider == "compatible":
            model, owner = await _served(api, target)
            target = replace(target, model=model)
        given = None if prices is None else read_prices(prices, target.model)
        if batching is not None:
            return _batched(api, target.facts(owner), settings, given, sdk, batching)
        return ProviderBackend(api, target.facts(owner), settings, given, settings_digest=sdk.scope)
    except BaseException:
        await api.close()
        raise


def _batched(
    api: Any,
    facts: Facts,
    settings: LimitSettings,
    prices: Prices | None,
    sdk: SdkSettings,
    batching: Batching,
) -> Backend:
    from sgc.runtime.executor.backends.providers.batched import BatchedBackend

    batches: Any
    if facts.api == "messages":
        from sgc.runtime.executor.backends.providers.anthropic.batches import AnthropicBatches

        batches = AnthropicBatches(api, facts)
    else:
        from sgc.runtime.executor.backends.providers.openai.batches import OpenAIBatches

        batches = OpenAIBatches(api, facts)
    return BatchedBackend(api, batches, facts, settings, batching, prices, sdk.scope)


async def _served(api: object, target: Target) -> tuple[str, str]:
    """The server's model and its owner; without a list of models, its name must be given."""
    from sgc.runtime.executor.backends.providers.openai.wire import model_of

    try:
        return model_of(await api.models(), target.model)  # type: ignore[attr-defined]
    except EngineUnavailable:
        raise
    except BackendError:
        if not target.model:
            raise
        return target.model, ""
