"""Backends by a provider's name or an address: keys, the environment, and what a server serves.

Keys come from the caller or the environment and stay in the SDK's client: no artifact, log or
error has them. What is wrong with the settings is found here, before anything is asked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from sgc.errors import BackendError, EngineUnavailable, UsageError
from sgc.runtime.executor.providers.backend import MAX_IN_FLIGHT, ProviderBackend
from sgc.runtime.executor.providers.limits import LimitSettings
from sgc.runtime.executor.providers.models import Choices, Facts, facts_for, parse_choices
from sgc.runtime.executor.providers.prices import read_prices

COMPATIBLE = ("openai+http://", "openai+https://")
SCHEMES = ("openai:", "anthropic:")
NO_KEY = "no-key"  # what a server gets that wants none


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to ask. provider: openai, anthropic or compatible; key: shown nowhere."""

    provider: str
    model: str
    choices: Choices = field(default_factory=Choices)
    base_url: str | None = None
    key: str = field(default="", repr=False)


def is_provider(uri: str) -> bool:
    return uri.startswith((*COMPATIBLE, *SCHEMES))


def parse_target(uri: str, key: str | None = None) -> Target:
    """`openai:MODEL`, `anthropic:MODEL` or `openai+http://HOST:PORT/v1#MODEL`, each with
    `?OPTION=VALUE`; raises UsageError for anything else, and where a key is missing.
    """
    if uri.startswith(COMPATIBLE):
        return _compatible(uri, key)
    provider, _, rest = uri.partition(":")
    model, _, query = rest.partition("?")
    return target(provider, model, _options(query), key=key)


def facts_of(uri: str) -> Facts:
    """What is known of `openai:MODEL` or `anthropic:MODEL`; no key is needed, nobody is asked."""
    provider, _, rest = uri.partition(":")
    model, _, query = rest.partition("?")
    if not uri.startswith(SCHEMES) or not model:
        raise UsageError(
            f"expected a provider's model, found {uri!r}", hint="openai:MODEL or anthropic:MODEL"
        )
    return facts_for(provider, model, parse_choices(_options(query)))


def target(
    provider: str,
    model: str,
    options: Mapping[str, str],
    base_url: str | None = None,
    key: str | None = None,
) -> Target:
    """A model of OpenAI or Anthropic, or of what stands in for it at base_url.

    The key is the environment's where none is given (`environment_key`).
    """
    if not model:
        raise UsageError(f"no model is named in {provider}:", hint=f"{provider}:MODEL")
    key = key or environment_key(provider, base_url)
    if not key:
        raise UsageError(
            f"no API key for {provider}",
            hint=f"set {_key_variable(provider)}; it is read from the environment",
        )
    return Target(provider, model, parse_choices(options), base_url, checked_key(key))


def environment_key(provider: str, base_url: str | None) -> str:
    """A provider's key, for the provider alone or for what its _BASE_URL names; another server
    gets SGC_TOKEN's, or no key: what a program calls a base_url is not whom the key is for.
    """
    if is_trusted(provider, base_url):
        return os.environ.get(_key_variable(provider), "")
    return os.environ.get("SGC_TOKEN", "") or NO_KEY


def is_trusted(provider: str, base_url: str | None) -> bool:
    """Whether an address is the provider's own, or the one that the environment names for it."""
    if base_url is None:
        return True
    named = os.environ.get(f"{provider.upper()}_BASE_URL", "")
    at = urlsplit(base_url)
    if named and (at.scheme, at.netloc) == urlsplit(named)[:2]:
        return True
    host, own = at.hostname or "", f"{provider}.com"
    return at.scheme == "https" and (host == own or host.endswith(f".{own}"))


def _key_variable(provider: str) -> str:
    return f"{provider.upper()}_API_KEY"


def _compatible(uri: str, key: str | None) -> Target:
    try:
        parts = urlsplit(uri.removeprefix("openai+"))
        is_whole = bool(parts.hostname) and parts.port != 0 and not parts.query
    except ValueError:  # no port, or no address between brackets
        is_whole = False
    if not is_whole:
        raise UsageError(
            "the address of a server like OpenAI's is openai+http://HOST:PORT/v1#MODEL?OPTION=VALUE"
        )
    if parts.username or parts.password:
        raise UsageError("an address must hold no password", hint="give a key in SGC_TOKEN")
    model, _, query = parts.fragment.partition("?")
    base_url = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    key = checked_key(key or os.environ.get("SGC_TOKEN", "") or environment_key("openai", base_url))
    return Target("compatible", model, parse_choices(_options(query)), base_url, key)


def _options(query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError as error:
        raise UsageError(f"{query!r} must be OPTION=VALUE&…") from error


def checked_key(key: str) -> str:
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise UsageError("an API key must be printable ASCII characters")
    return key


async def open_backend(
    target: Target, settings: LimitSettings, prices: Path | None = None
) -> ProviderBackend:
    """The backend; a compatible server is asked which models it has."""
    check_settings(settings)
    n_room = settings.max_concurrency or MAX_IN_FLIGHT
    if target.provider == "anthropic":
        from sgc.runtime.executor.providers.anthropic_api import AnthropicApi

        own = AnthropicApi(target.base_url, target.key, settings.request_timeout_s, n_room)
        return _backend(own, target, "", settings, prices)
    from sgc.runtime.executor.providers.openai_api import OpenAIApi

    is_own = target.provider == "openai"
    is_ours = is_own and is_trusted("openai", target.base_url)
    api = OpenAIApi(target.base_url, target.key, settings.request_timeout_s, n_room, is_ours)
    if is_own:
        return _backend(api, target, "", settings, prices)
    try:
        model, owner = await _served(api, target)
        found = Target("compatible", model, target.choices)
        return _backend(api, found, owner, settings, prices)
    except BaseException:
        await api.close()
        raise


def _backend(
    api: object, target: Target, owner: str, settings: LimitSettings, prices: Path | None
) -> ProviderBackend:
    facts = facts_for(target.provider, target.model, target.choices, owner)
    given = None if prices is None else read_prices(prices, target.model)
    return ProviderBackend(api, facts, settings, given)  # type: ignore[arg-type]


async def _served(api: object, target: Target) -> tuple[str, str]:
    """The server's model and who owns it; a server without a list may be used by a model's name."""
    from sgc.runtime.executor.providers.openai_wire import model_of

    try:
        return model_of(await api.models(), target.model)  # type: ignore[attr-defined]
    except EngineUnavailable:
        raise
    except BackendError:
        if not target.model:
            raise
        return target.model, ""


def check_settings(settings: LimitSettings) -> None:
    """Raises UsageError for limits that let nothing through."""
    for name in ("max_concurrency", "rpm", "tpm", "request_timeout_s", "max_cost"):
        value = getattr(settings, name)
        if value is not None and not value > 0:
            raise UsageError(f"{name} must be above 0, found {value!r}")
