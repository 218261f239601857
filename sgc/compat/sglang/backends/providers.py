"""SGLang's classes of model providers: `OpenAI`, `Anthropic`, and classes that are not available.

Scripts make them at module level, so making one needs no key, no package and no network; the first
run opens them, with what `docs/providers.md` says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sgc.compat.sglang.backends.runtime_endpoint import NamedEndpoint
from sgc.compat.sglang.settings import chat_template as templates
from sgc.compat.sglang.settings.chat_template import ChatTemplate
from sgc.errors import SgcError, UsageError
from sgc.runs.endpoint import Endpoint
from sgc.runs.providers import ProviderEndpoint, open_provider
from sgc.runtime.executor.backends.providers.connect import Target, parse_target, target
from sgc.runtime.executor.backends.providers.models.models import Choices, Facts, facts_for
from sgc.runtime.executor.backends.providers.wire.addresses import (
    address_of,
    is_trusted,
    is_vendors,
)
from sgc.runtime.executor.backends.providers.wire.limits import LimitSettings
from sgc.runtime.executor.interface.backend import (
    Backend,
    Generated,
    OnDelta,
    Prompt,
    Sampling,
    Scored,
)
from sgc.runtime.executor.interface.capabilities import Capabilities

NAMES = ("Anthropic", "Crusoe", "LiteLLM", "OpenAI", "Shortfin", "VertexAI")
_TAKEN = ("api_key", "base_url", "timeout")  # arguments of the providers' own clients
# Their arguments that are refused, and what to do instead.
_INSTEAD = {
    "organization": "set OPENAI_ORG_ID",
    "project": "set OPENAI_PROJECT_ID",
    "max_retries": "leave it out: faults that pass are tried again, up to 8 times",
}


class ProviderUnavailable(SgcError):
    """sgc does not support a provider's API."""


class LazyBackend(Backend):
    """A provider's model, opened by the first request; if that fails, the next one retries."""

    def __init__(self, find: Callable[[], Target], settings: LimitSettings) -> None:
        self._find = find
        self.settings = settings
        self._lock = asyncio.Lock()
        self._opened: Backend | None = None

    async def _open(self) -> Backend:
        async with self._lock:
            if self._opened is None:
                self._opened = await open_provider(self._find(), self.settings)
            return self._opened

    @property
    def facts(self) -> Facts | None:
        """What is known of the model, once it is opened."""
        return getattr(self._opened, "facts", None)

    async def capabilities(self) -> Capabilities:
        return await (await self._open()).capabilities()

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        return await (await self._open()).generate(prompt, sampling, on_delta)

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        return await (await self._open()).generate_n(prompt, samplings)

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        return await (await self._open()).score(prompt, choices, unconditional)

    async def flush_cache(self) -> int:
        """Does nothing: a provider's cache cannot be flushed."""
        return 0

    async def close(self) -> None:
        """Closes the provider's backend, if it was opened."""
        async with self._lock:
            if self._opened is not None:
                await self._opened.close()


@dataclass(frozen=True)
class _Client:
    """The arguments of a provider's own client. Raises UsageError for invalid values."""

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        url, timeout = self.base_url, self.timeout
        if url is not None and not str(url).startswith(("http://", "https://")):
            raise UsageError(f"base_url must be a URL of http or https, found {url!r}")
        is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
        if timeout is not None and not (is_number and timeout > 0):
            raise UsageError(f"timeout must be a number of seconds above 0, found {timeout!r}")

    @property
    def limits(self) -> LimitSettings:
        default = LimitSettings()
        return default if self.timeout is None else replace(default, request_timeout_s=self.timeout)


class _Provider(NamedEndpoint):
    """A provider's model. `find` returns its target, or raises if there is no key."""

    def __init__(
        self,
        model_name: str,
        find: Callable[[], Target],
        template: ChatTemplate,
        limits: LimitSettings,
    ) -> None:
        super().__init__(LazyBackend(find, limits))
        self.model_name = model_name
        self._dress(template)

    @property
    def model_info(self) -> dict[str, Any]:
        """`model_path` as it was given; makes no request."""
        return {"model_path": self.model_name}


class OpenAI(_Provider):
    """A model of OpenAI or, with base_url, of a server with OpenAI's API.

    client: `api_key`, `base_url` and `timeout` (seconds of one attempt). The default api_key is
    that of OPENAI_API_KEY, but only for OpenAI and OPENAI_BASE_URL; another server gets that of
    SGC_TOKEN. is_chat_model: whether to use the chat API; None uses what is known of the model.
    Raises UsageError for other arguments.
    """

    def __init__(
        self,
        model_name: str,
        is_chat_model: bool | None = None,
        chat_template: ChatTemplate | None = None,
        is_azure: bool = False,
        *args: Any,
        **client: Any,
    ) -> None:
        if is_azure:
            raise UsageError(
                "sglang.OpenAI: is_azure=True is not available in sgc",
                hint="give base_url= and api_key= of an address that takes OpenAI's own requests",
            )
        given = _client_of(self, args, client)
        api = None if is_chat_model is None else "chat" if is_chat_model else "completions"
        choices = Choices(api=api)
        is_own = is_trusted("openai", given.base_url)
        is_vendor = is_vendors("openai", address_of("openai", given.base_url))
        facts = facts_for("openai", model_name, choices, is_vendor=is_vendor)
        self.is_chat_model = facts.api == "chat"

        def find() -> Target:
            if not is_own:
                at = parse_target(f"openai+{given.base_url}", given.api_key)
                return replace(at, model=model_name, choices=choices)
            found = target("openai", model_name, {}, given.base_url, given.api_key)
            return replace(found, choices=choices)

        template = chat_template or templates.get_chat_template_by_model_path(model_name)
        super().__init__(model_name, find, template, given.limits)


class Anthropic(_Provider):
    """A model of Anthropic; client: as of `OpenAI`, with the key of ANTHROPIC_API_KEY."""

    def __init__(self, model_name: str, *args: Any, **client: Any) -> None:
        given = _client_of(self, args, client)

        def find() -> Target:
            return target("anthropic", model_name, {}, given.base_url, given.api_key)

        template = templates.get_chat_template("claude")
        super().__init__(model_name, find, template, given.limits)


class Addressed(NamedEndpoint, ProviderEndpoint):
    """A provider's model by its address, as for `sgc.connect`; opened at once."""

    def __init__(self, uri: str, prices: str | Path | None = None, **limits: Any) -> None:
        super().__init__(parse_target(uri), prices, **limits)
        self._dress()


def _client_of(provider: object, args: Sequence[Any], client: Mapping[str, Any]) -> _Client:
    name = f"sglang.{type(provider).__name__}"
    if args:
        raise UsageError(f"{name}: what its client takes must be given by name, e.g. api_key=…")
    for word in client:
        if word not in _TAKEN:
            raise UsageError(
                f"{name}: {word} is not available in sgc",
                hint=_INSTEAD.get(word, f"of what the client takes there is {', '.join(_TAKEN)}"),
            )
    return _Client(**client)


class _Unavailable(Endpoint):
    """Raises ProviderUnavailable when it is made."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise ProviderUnavailable(
            f"sglang.{type(self).__name__} is not available in sgc",
            hint="run on sgl.OpenAI or sgl.Anthropic; a server that speaks OpenAI's API is "
            "sgl.OpenAI(model, base_url=…, api_key=…)",
        )


class LiteLLM(_Unavailable):
    """Models behind LiteLLM."""


class VertexAI(_Unavailable):
    """Google's API."""


class Crusoe(_Unavailable):
    """Crusoe's API."""


class Shortfin(_Unavailable):
    """AMD's server."""
