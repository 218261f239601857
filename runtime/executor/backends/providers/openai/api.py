"""OpenAI's API and those like it, through OpenAI's own SDK; import it lazily.

One try of one request: the SDK's retries are off, ours are in `retry.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import openai

from sgc.errors import BackendError
from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.backends.providers.openai import wire as wire
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


class OpenAIApi:
    """Sends requests to `base_url`. is_own: OpenAI's account headers of the environment count."""

    def __init__(
        self,
        base_url: str,
        key: str,
        timeout_s: float,
        max_in_flight: int,
        is_own: bool,
        sdk: SdkSettings,
    ) -> None:
        self._secrets = tuple(filter(None, (key, *sdk.secrets)))
        self._sdk = sdk
        given = dict(sdk.client)
        if "http_client" not in given:
            own = client_settings(max_in_flight, timeout_s)
            given["http_client"] = openai.DefaultAsyncHttpxClient(**own)
        with constructing("openai"):
            self._client = openai.AsyncOpenAI(
                api_key=key, base_url=base_url, max_retries=0, **{"timeout": timeout_s, **given}
            )
        if not is_own:  # what the environment names as organization is nobody else's business
            self._client.organization = given.get("organization")
            self._client.project = given.get("project")

    @property
    def base_url(self) -> str:
        return str(self._client.base_url)

    async def close(self) -> None:
        await self._client.close()

    async def models(self) -> Any:
        """The server's list of models; raises typed errors."""
        try:
            page = await self._client.models.list()
            return [model.model_dump(warnings=False) for model in page.data or ()]
        except openai.OpenAIError as error:
            raise self._error(error, "") from None
        except (AttributeError, TypeError, ValueError):
            raise MalformedReply(
                "the server's list of models is none", hint="name the model: #MODEL"
            ) from None

    async def send(
        self, lowered: Lowered, facts: Facts, on_text: Callable[[str], None] | None
    ) -> Replies:
        """One try; `on_text` gets a streamed text as it comes. Raises typed errors."""
        is_streamed = lowered.is_streamed or on_text is not None
        body = self._sdk.with_body(wire.body_of(lowered, facts, is_streamed), facts)
        return await self.ask(body, lowered.n, facts, on_text)

    async def ask(
        self, body: wire.Json, n: int, facts: Facts, on_text: Callable[[str], None] | None = None
    ) -> Replies:
        try:
            if body.get("stream"):
                return await self._stream(body, facts, on_text)
            found = (await self._create(body, facts)).model_dump(warnings=False)
        except openai.OpenAIError as error:
            raise self._error(error, facts.model) from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise MalformedReply(f"the server's reply is no JSON ({error})") from None
        except (AttributeError, TypeError) as error:
            raise MalformedReply(f"the server's reply is not of its shape ({error})") from None
        choices = wire.check_choices(found.get("choices"), n)
        return Replies(tuple(map(wire.reply_of, choices)), wire.spent_of(found.get("usage")))

    async def _create(self, body: wire.Json, facts: Facts) -> Any:
        """What the SDK names is given by name, all else as it is."""
        given = dict(body)
        is_chat = facts.api == "chat"
        resource: Any = self._client.chat.completions if is_chat else self._client.completions
        asked = "messages" if is_chat else "prompt"
        named = {name: given.pop(name) for name in ("model", asked, "stream") if name in given}
        return await resource.create(**named, extra_body=given, **self._sdk.beside_body)

    async def _stream(
        self, body: wire.Json, facts: Facts, on_text: Callable[[str], None] | None
    ) -> Replies:
        stream = await self._create(body, facts)
        found = wire.Stream()
        async with stream:
            async for chunk in stream:
                text = found.add(chunk.model_dump(warnings=False))
                if text and on_text is not None:
                    on_text(text)
        reply, spent = found.result()
        return Replies((reply,), spent)

    def _error(self, error: openai.OpenAIError, model: str) -> BackendError:
        if isinstance(error, openai.APIStatusError):
            headers = error.response.headers
            return status_error(error.status_code, error.body, headers, NAME, self._secrets, model)
        if isinstance(error, openai.APITimeoutError):
            return ProviderUnavailable(
                "the provider took too long to reply", hint="--request-timeout gives it longer"
            )
        if isinstance(error, openai.APIConnectionError):
            why = redacted(str(error.__cause__ or error), self._secrets)
            return ProviderUnavailable(
                f"no connection to {where(self._client.base_url)} ({why})",
                hint="is a server running there, and is the address right?",
            )
        if isinstance(error, openai.APIResponseValidationError):
            return MalformedReply("the server's reply is not of its shape")
        if isinstance(error, openai.APIError):
            return stream_error(error.body or error.message, NAME, self._secrets)
        return BackendError(redacted(str(error), self._secrets))
