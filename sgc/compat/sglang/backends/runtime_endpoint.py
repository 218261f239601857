"""SGLang's backend classes: `RuntimeEndpoint`, `Runtime` and the base class.

The first two are sgc's own classes with two things that SGLang's programs read: named chat
templates and a count of tokens. Model providers are in `providers.py`.
"""

from __future__ import annotations

from typing import Any

from sgc.compat.sglang.backends.hooks import Hooks
from sgc.compat.sglang.backends.usage import CountingBackend, TokenUsage
from sgc.compat.sglang.server.arguments import ServerArgs
from sgc.compat.sglang.settings import chat_template as templates
from sgc.compat.sglang.settings.chat_template import ChatTemplate
from sgc.errors import UsageError
from sgc.runs import endpoints
from sgc.runs.endpoint import Endpoint
from sgc.runs.endpoints import SCHEMES


class NamedEndpoint(Hooks):
    """An endpoint whose chat template has SGLang's form, and which counts tokens."""

    _template: ChatTemplate | None = None

    def _dress(self, template: ChatTemplate | None = None) -> None:
        self.token_usage = TokenUsage()
        self.backend = CountingBackend(self.backend, self.token_usage)
        if template is not None:
            self.chat_template = template

    @property
    def chat_template(self) -> ChatTemplate:
        """The texts that the chat template puts around each role's content; it can be set."""
        if self._template is None:
            capabilities = self._capabilities()
            name = templates.name_of(capabilities.chat, capabilities.model)
            self._template = templates.template_of(name, capabilities.chat)
        return self._template

    @chat_template.setter
    def chat_template(self, template: Any) -> None:
        Endpoint.chat_template.__set__(self, template)  # type: ignore[attr-defined]
        self._template = template if isinstance(template, ChatTemplate) else None


class RuntimeEndpoint(NamedEndpoint, endpoints.RuntimeEndpoint):
    """A running server: SGLang's own by its URL, or an engine of ours at `grpc://HOST:PORT`."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        verify: str | None = None,
        chat_template_name: str | None = None,
    ) -> None:
        named = (
            None if chat_template_name is None else templates.get_chat_template(chat_template_name)
        )
        super().__init__(base_url, api_key, verify)
        if named is None and not base_url.startswith(SCHEMES):
            found = templates.get_chat_template_by_model_path(self.get_model_name())
            named = found if found.name in templates.chat_template_registry else None
        self._dress(named)

    @property
    def support_concate_and_append(self) -> bool:
        """False: joins append the children's texts, as there is no route to concatenate KV."""
        return False


class Runtime(NamedEndpoint, endpoints.Runtime):
    """An engine of our own with SGLang's arguments: `Runtime(model_path=…, tp_size=…)`."""

    def __init__(self, model_path: str | None = None, **settings: Any) -> None:
        self.server_args = ServerArgs(model_path, **settings)
        chat = self.server_args.chat_template
        named = None if chat is None else templates.get_chat_template(chat)
        super().__init__(model_path, **self.server_args.engine_settings)
        self._dress(named)

    def get_tokenizer(self) -> Any:
        """The model's tokenizer; needs transformers."""
        from sgc.compat.sglang.server.srt import get_tokenizer

        return get_tokenizer(self.get_model_name())


class Engine:
    """SGLang's offline engine, which is not a backend for programs; it is not available."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise UsageError(
            "sglang.Engine is the offline engine: it is no backend of programs and is not here",
            hint="sgl.Runtime(model_path=…) starts an engine that programs run on",
        )
