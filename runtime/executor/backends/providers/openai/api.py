"""OpenAI's API and those like it, through OpenAI's own SDK; import it lazily."""

from __future__ import annotations

from typing import Any

import openai

from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.backends.providers.openai import wire
from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply
from sgc.runtime.executor.backends.providers.wire.sdk import SdkApi
from sgc.runtime.executor.backends.providers.wire.settings import SdkSettings


class OpenAIApi(SdkApi):
    """Sends requests to `base_url`. is_own: whether to send the environment's account headers."""

    package, client, failure, wire = openai, openai.AsyncOpenAI, openai.OpenAIError, wire

    def __init__(
        self,
        base_url: str,
        key: str,
        timeout_s: float,
        max_in_flight: int,
        is_own: bool,
        sdk: SdkSettings,
    ) -> None:
        super().__init__(base_url, key, timeout_s, max_in_flight, sdk)
        if not is_own:  # the environment's organization is sent only to OpenAI
            self._client.organization = sdk.client.get("organization")
            self._client.project = sdk.client.get("project")

    async def models(self) -> Any:
        """The server's list of models; raises typed errors."""
        try:
            with self.typed_errors(""):
                page = await self._client.models.list()
                return [model.model_dump(warnings=False) for model in page.data or ()]
        except MalformedReply:
            raise MalformedReply(
                "the server returned no valid list of models", hint="name the model: #MODEL"
            ) from None

    async def _create(self, body: dict[str, Any], facts: Facts) -> Any:
        is_chat = facts.api == "chat"
        resource = self._client.chat.completions if is_chat else self._client.completions
        asked = "messages" if is_chat else "prompt"
        named = {name: body.pop(name) for name in ("model", asked, "stream") if name in body}
        return await resource.create(**named, extra_body=body, **self._sdk.beside_body)
