"""Anthropic's API through its own SDK; import it lazily.

One try of one request: the SDK's retries are off, ours are in `retry.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2

from sgc.errors import BackendError
from sgc.runtime.executor.backends.providers.anthropic import wire as wire
from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.backends.providers.wire.errors import (
    MalformedReply,
    ProviderUnavailable,
    redacted,
    status_error,
    stream_error,
)
from sgc.runtime.executor.backends.providers.wire.http import client_settings, constructing, where
from sgc.runtime.executor.backends.providers.wire.lower import Lowered
from sgc.runtime.executor.backends.providers.wire.reply import Replies
from sgc.runtime.executor.backends.providers.wire.settings import SdkSettings

NAME = "the provider"
_NAMED = ("model", "max_tokens", "messages", "stream")


class AnthropicApi:
    """Sends requests to `base_url`."""

    def __init__(
        self, base_url: str, key: str, timeout_s: float, max_in_flight: int, sdk: SdkSettings
    ) -> None:
        self._secrets = tuple(filter(None, (key, *sdk.secrets)))
        self._sdk = sdk
        given = dict(sdk.client)
        if "http_client" not in given:
            own = client_settings(max_in_flight, timeout_s)
            given["http_client"] = anthropic.DefaultAsyncHttpxClient(**own)
        with constructing("anthropic"):
            self._client = anthropic.AsyncAnthropic(
                api_key=key, base_url=base_url, max_retries=0, **{"timeout": timeout_s, **given}
            )

    @property
    def base_url(self) -> str:
        return str(self._client.base_url)

    async def close(self) -> None:
        await self._client.close()

    async def send(
        self, lowered: Lowered, facts: Facts, on_text: Callable[[str], None] | None
    ) -> Replies:
        """One try; `on_text` gets a streamed text as it comes. Raises typed errors."""
        assert lowered.n == 1
        is_streamed = lowered.is_streamed or on_text is not None
        body = self._sdk.with_body(wire.body_of(lowered, facts, is_streamed), facts)
        try:
            if is_streamed:
                return await self._stream(body, on_text)
            found = (await self._create(body)).model_dump(warnings=False)
        except anthropic.AnthropicError as error:
            raise self._error(error, facts.model) from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise MalformedReply(f"the server's reply is no JSON ({error})") from None
        except (AttributeError, TypeError) as error:
            raise MalformedReply(f"the server's reply is not of its shape ({error})") from None
        return Replies((wire.reply_of(found),), wire.spent_of(found.get("usage")))

    async def _create(self, body: wire.Json) -> Any:
        """What the SDK must have is given by name, all else as it is."""
        named = {name: body[name] for name in _NAMED if name in body}
        rest = {name: value for name, value in body.items() if name not in named}
        beside = self._sdk.beside_body
        return await self._client.messages.create(**named, extra_body=rest, **beside)

    async def _stream(self, body: wire.Json, on_text: Callable[[str], None] | None) -> Replies:
        stream = await self._create(body)
        found = wire.Stream()
        try:
            async with stream:
                async for event in stream:
                    text = found.add(event.model_dump(warnings=False))
                    if text and on_text is not None:
                        on_text(text)
        except httpx2.HTTPError as error:
            # This SDK lets what cuts a stream through as it is.
            raise ProviderUnavailable(f"the stream was cut ({type(error).__name__})") from None
        reply, spent = found.result()
        return Replies((reply,), spent)

    def _error(self, error: anthropic.AnthropicError, model: str) -> BackendError:
        if isinstance(error, anthropic.APIStatusError):
            status, body = error.status_code, error.body
            if status == 200:  # an event of a stream
                return stream_error(body, NAME, self._secrets)
            headers = error.response.headers
            return status_error(status, body, headers, NAME, self._secrets, model)
        if isinstance(error, anthropic.APITimeoutError):
            return ProviderUnavailable(
                "the provider took too long to reply", hint="--request-timeout gives it longer"
            )
        if isinstance(error, anthropic.APIConnectionError):
            why = redacted(str(error.__cause__ or error), self._secrets)
            return ProviderUnavailable(
                f"no connection to {where(self._client.base_url)} ({why})",
                hint="is a server running there, and is the address right?",
            )
        if isinstance(error, anthropic.APIResponseValidationError):
            return MalformedReply("the server's reply is not of its shape")
        return BackendError(redacted(str(error), self._secrets))
