"""Makes one try of a request through a provider's SDK; OpenAI's and Anthropic's are alike.

The SDK's retries are off; ours are in `retry.py`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from types import ModuleType
from typing import Any

import httpx2

from sgc.errors import BackendError
from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.backends.providers.wire.errors import (
    ADDRESS,
    MalformedReply,
    ProviderUnavailable,
    WrongServer,
    page_of,
    redact,
    redacted,
    status_error,
    stream_error,
)
from sgc.runtime.executor.backends.providers.wire.http import client_settings, constructing, where
from sgc.runtime.executor.backends.providers.wire.lower import Lowered
from sgc.runtime.executor.backends.providers.wire.reply import Replies
from sgc.runtime.executor.backends.providers.wire.settings import SdkSettings
from sgc.runtime.executor.interface.backend import OnDelta

NAME = "the provider"


class SdkApi(ABC):
    """Sends requests to `base_url`. A subclass names its SDK, the SDK's client class and base error
    class, and the module for the API's form: `body_of`, `replies_of` and `Stream`.
    """

    package: Any
    client: Any
    failure: type[Exception]
    wire: ModuleType

    def __init__(
        self, base_url: str, key: str, timeout_s: float, max_in_flight: int, sdk: SdkSettings
    ) -> None:
        self._sdk = sdk
        self._secrets = tuple(filter(None, (key, *sdk.secrets)))
        given = dict(sdk.client)
        if "http_client" not in given:
            own = client_settings(max_in_flight, timeout_s)
            given["http_client"] = self.package.DefaultAsyncHttpxClient(**own)
        with constructing(self.package.__name__):
            self._client = self.client(
                api_key=key, base_url=base_url, max_retries=0, **{"timeout": timeout_s, **given}
            )

    @property
    def base_url(self) -> str:
        return str(self._client.base_url)

    @property
    def sdk_client(self) -> Any:
        return self._client

    def body(self, lowered: Lowered, facts: Facts) -> dict[str, Any]:
        """The body of a request that is not streamed."""
        return self._sdk.with_body(self.wire.body_of(lowered, facts, False), facts)

    def replies(self, found: Any, n: int) -> Replies:
        """The replies in the body of an answer. Raises typed errors."""
        with self.typed_errors(""):
            replies: Replies = self.wire.replies_of(found, n)
        return replies

    def failure_of(self, status: int, said: Any, model: str) -> BackendError:
        """The error for an answer that failed, as a batch's results tell it."""
        return status_error(status, said, {}, NAME, self._secrets, model)

    async def close(self) -> None:
        await self._client.close()

    async def send(self, lowered: Lowered, facts: Facts, on_text: OnDelta | None) -> Replies:
        """Makes one try; `on_text` gets streamed text as it arrives. Raises typed errors."""
        is_streamed = lowered.is_streamed or on_text is not None
        body = self._sdk.with_body(self.wire.body_of(lowered, facts, is_streamed), facts)
        with self.typed_errors(facts.model):
            reply = await self._create(body, facts)
            if not is_streamed:
                found = an_object(reply).model_dump(warnings=False)
                replies: Replies = self.wire.replies_of(found, lowered.n)
                return replies
        stream = self.wire.Stream()
        async with aclosing(self._texts(reply, stream, facts.model)) as texts:
            async for text in texts:
                if text and on_text is not None:
                    on_text(text)  # outside of typed_errors: its errors are not the server's
        with self.typed_errors(facts.model):
            whole, spent = stream.result()
        return Replies((whole,), spent)

    @abstractmethod
    async def _create(self, body: dict[str, Any], facts: Facts) -> Any:
        """Sends a body: fields that the SDK knows as arguments, all others in extra_body."""

    async def _texts(self, reply: Any, stream: Any, model: str) -> AsyncGenerator[str, None]:
        """The texts of a streamed reply's events, which `stream` reads."""
        has_events = False
        with self.typed_errors(model):
            async with reply:
                async for event in reply:
                    has_events = True
                    yield stream.add(an_object(event).model_dump(warnings=False))
            if not has_events:
                _check_streams(reply.response.headers.get("content-type", ""))

    @contextmanager
    def typed_errors(self, model: str) -> Iterator[None]:
        """Raises errors of the SDK, and what goes wrong on the way to a reply, as ours, with
        messages that may be shown."""
        try:
            with self._sdk_errors(model):
                yield
        except BackendError as error:
            redact(error, self._secrets)
            raise
        except UnicodeEncodeError as error:
            found = error.object[error.start]
            raise BackendError(
                f"the request holds {found!r}, which {error.encoding} cannot encode",
                hint='of half a surrogate pair: decode bytes with errors="replace"',
            ) from None
        except (ValueError, OverflowError, RecursionError) as error:
            why = redacted(str(error), self._secrets)
            raise MalformedReply(f"the server's reply cannot be read ({why})") from None

    @contextmanager
    def _sdk_errors(self, model: str) -> Iterator[None]:
        try:
            yield
        except self.failure as error:
            raise self._error(error, model) from None
        except httpx2.HTTPError as error:  # Anthropic's SDK does not wrap errors within a stream
            raise ProviderUnavailable(f"the stream was cut ({type(error).__name__})") from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise MalformedReply(f"the server's reply is no JSON ({error})") from None
        except (AttributeError, TypeError) as error:
            raise MalformedReply(f"the server's reply is not of its shape ({error})") from None

    def _error(self, error: Any, model: str) -> BackendError:
        package = self.package
        if isinstance(error.__cause__, BackendError):  # of our client, which the SDK wraps
            return error.__cause__
        if isinstance(error, package.APIStatusError) and error.status_code != 200:
            headers = error.response.headers
            return status_error(error.status_code, error.body, headers, NAME, self._secrets, model)
        if isinstance(error, package.APITimeoutError):
            return ProviderUnavailable(
                "the provider took too long to reply", hint="--request-timeout gives it longer"
            )
        if isinstance(error, package.APIConnectionError):
            return ProviderUnavailable(
                f"no connection to {where(self._client.base_url)} ({error.__cause__ or error})",
                hint="is a server running there, and is the address right?",
            )
        if isinstance(error, package.APIResponseValidationError):
            return MalformedReply("the server's reply is not of its shape")
        if isinstance(error, package.APIError):  # an event of a stream
            return stream_error(error.body or error.message, NAME, self._secrets)
        return BackendError(str(error))


def an_object(reply: Any) -> Any:
    """The SDK's object of a reply; raises MalformedReply for what is none, such as a page."""
    if hasattr(reply, "model_dump"):
        return reply
    page = page_of(reply) if isinstance(reply, str) else ""
    if page:
        raise WrongServer(f"the server sent {page}, and no reply", hint=ADDRESS)
    raise MalformedReply(f"the server sent no object but {str(reply)[:80]!r}")


def _check_streams(kind: str) -> None:
    """Raises MalformedReply if what had no events is of another kind than a stream."""
    kind = kind.partition(";")[0].strip().lower()
    if kind == "text/html":
        raise WrongServer("the server sent a page in HTML, and no stream", hint=ADDRESS)
    if kind == "application/json":
        # Perhaps a whole reply, perhaps a failure that passes.
        raise MalformedReply(
            f"the server was asked for a stream of events, and sent {kind}",
            hint="if it cannot stream, run without a stream",
        )
