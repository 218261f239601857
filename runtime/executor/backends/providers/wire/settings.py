"""Sorts the settings of an endpoint: sgc's limits, and settings of the SDK.

Every given setting is used, or an error names it. Nothing is sent or logged here.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from sgc.errors import UsageError
from sgc.runtime.executor.backends.providers.models.models import Facts, refusal
from sgc.runtime.executor.backends.providers.wire.limits import LimitSettings
from sgc.runtime.executor.run.options import RunOptions

LIMITS = tuple(row.name for row in fields(LimitSettings))
_CLIENT = {
    "openai": ("default_headers", "default_query", "http_client", "organization", "project"),
    "anthropic": ("default_headers", "default_query", "http_client"),
}
_REQUEST = ("extra_headers", "extra_query", "extra_body")
_HEADERS = ("default_headers", "extra_headers")
_MAPPINGS = (*_HEADERS, "default_query", "extra_query", "extra_body")
_INSTEAD = {
    "max_retries": "faults that pass are tried again, up to 8 times",
    "data_residency": "give the address, such as base_url='https://eu.api.openai.com/v1'",
    "auth_token": "give api_key=",
}
# Fields that sgc writes itself, or that it needs to read replies.
_RESERVED = frozenset(
    {"model", "messages", "prompt", "system", "n", "best_of", "echo", "stream", "stream_options"}
    | {"max_tokens", "max_completion_tokens", "tools", "functions"}
)
_SECRET_WORDS = ("auth", "key", "token", "secret", "cookie")


@dataclass(frozen=True, slots=True)
class SdkSettings:
    """client: for the SDK's client; request: for each of its requests. Both may hold secrets."""

    client: Mapping[str, Any] = field(default_factory=dict, repr=False)
    request: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of headers whose names suggest a key or secret."""
        return tuple(value for name, value in self._headers() if _is_secret(name) and value)

    @property
    def scope(self) -> str:
        """A hash of the settings that change requests and so replies; "" if there are none."""
        headers = sorted(each for each in self._headers() if not _is_secret(each[0]))
        body = self.request.get("extra_body", {})
        query = [self.client.get("default_query", {}), self.request.get("extra_query", {})]
        if not (headers or body or any(query)):
            return ""
        said = json.dumps([headers, body, query], sort_keys=True, default=str)
        return hashlib.sha256(said.encode()).hexdigest()

    def _headers(self) -> Iterable[tuple[str, str]]:
        for given in (
            self.client.get("default_headers", {}),
            self.request.get("extra_headers", {}),
        ):
            yield from given.items()

    def with_body(self, body: dict[str, Any], facts: Facts) -> dict[str, Any]:
        """A request's body with extra_body; raises UnsupportedParameter for a field in both."""
        extra = self.request.get("extra_body", {})
        if twice := sorted(set(body) & set(extra)):
            raise refusal(
                facts, f"is asked for {twice[0]} by the program and by extra_body", "leave one out"
            )
        return {**body, **extra}

    @property
    def beside_body(self) -> dict[str, Any]:
        """The other keyword arguments of each call."""
        return {name: value for name, value in self.request.items() if name != "extra_body"}


def _is_secret(header: str) -> bool:
    return any(word in header.lower() for word in _SECRET_WORDS)


def sort_settings(provider: str, given: Mapping[str, Any]) -> tuple[LimitSettings, SdkSettings]:
    """Sorts settings by name; raises UsageError for unknown names and invalid values."""
    given = {name: value for name, value in given.items() if value is not None}
    client = _CLIENT["anthropic" if provider == "anthropic" else "openai"]
    known = (*LIMITS, "timeout", *client, *_REQUEST)
    for name in given:
        if name not in known:
            raise _unknown(name, known)
    for name in set(given) & set(_MAPPINGS):
        _check_mapping(name, given[name])
    limits = {name: value for name, value in given.items() if name in LIMITS}
    sdk = {name: given[name] for name in client if name in given}
    _sort_timeout(given, limits, sdk)
    settings = LimitSettings(**limits)
    check_settings(settings)
    return settings, SdkSettings(sdk, {name: given[name] for name in _REQUEST if name in given})


def _sort_timeout(given: Mapping[str, Any], limits: dict[str, Any], sdk: dict[str, Any]) -> None:
    """A number of seconds is the timeout of a try; other kinds of timeout go to the SDK."""
    timeout = given.get("timeout")
    if timeout is None:
        return
    if "request_timeout_s" in given:
        raise UsageError("timeout and request_timeout_s are the same", hint="leave one out")
    if isinstance(timeout, (int, float)):
        limits["request_timeout_s"] = timeout
    elif hasattr(timeout, "connect") and hasattr(timeout, "read"):
        sdk["timeout"] = timeout
    else:
        raise UsageError(f"timeout must be a number of seconds, found {timeout!r}")


def _unknown(name: str, known: tuple[str, ...]) -> UsageError:
    listed = f"it takes {', '.join(('base_url', 'api_key', 'options', 'prices', *known))}"
    near = get_close_matches(name, known, 1)
    if name in _INSTEAD:
        listed = _INSTEAD[name]
    elif name in RunOptions.__slots__:
        listed = f"give it to the run, or to a generation: run(…, {name}=…)"
    elif near:
        listed = f"is it {near[0]}? {listed}"
    return UsageError(f"a provider's endpoint takes no {name!r}", hint=listed)


def _check_mapping(name: str, value: Any) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise UsageError(f"{name} must be a mapping from names, found {type(value).__name__}")
    if name in _HEADERS and not all(isinstance(each, str) for each in value.values()):
        raise UsageError(f"{name} must be a mapping from names to texts")
    if name != "extra_body":
        return
    if reserved := sorted(_RESERVED & set(value)):
        raise UsageError(
            f"extra_body must not have {reserved[0]!r}, which sgc sets itself",
            hint="it is for what a program has no words for",
        )
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"extra_body is no JSON: {error}") from error


def check_settings(settings: LimitSettings) -> None:
    """Raises UsageError for limits that are not positive numbers."""
    for name in LIMITS:
        value = getattr(settings, name)
        if value is None:
            continue
        kinds = (int,) if name == "max_concurrency" else (int, float)
        is_number = isinstance(value, kinds) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or not value > 0:
            what = "a whole number" if name == "max_concurrency" else "a number"
            raise UsageError(f"{name} must be {what} above 0, found {value!r}")
