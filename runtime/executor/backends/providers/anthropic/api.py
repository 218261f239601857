"""Anthropic's API through its own SDK; import it lazily."""

from __future__ import annotations

from typing import Any

import anthropic

from sgc.runtime.executor.backends.providers.anthropic import wire
from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.backends.providers.wire.sdk import SdkApi

_NAMED = ("model", "max_tokens", "messages", "stream")


class AnthropicApi(SdkApi):
    """Sends requests to `base_url`."""

    package, client = anthropic, anthropic.AsyncAnthropic
    failure, wire = anthropic.AnthropicError, wire

    async def _create(self, body: dict[str, Any], facts: Facts) -> Any:
        named = {name: body.pop(name) for name in _NAMED if name in body}
        return await self._client.messages.create(**named, extra_body=body, **self._sdk.beside_body)
