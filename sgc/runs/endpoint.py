"""Endpoints: backends for programs, for synchronous and asynchronous callers alike."""

from __future__ import annotations

import copy
import importlib.util
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sgc.errors import SgcError, UsageError
from sgc.runtime.executor.interface.backend import Backend, TextRun
from sgc.runtime.executor.interface.capabilities import Capabilities, ChatFormat
from sgc.runtime.executor.interface.wrapping import Wrapping
from sgc.runtime.executor.run.loop import shared


class Endpoint:
    """A backend to run programs on, for synchronous and asynchronous callers alike.

    It belongs to the process that made it: a forked child has none of its connections and threads.
    compiles: whether programs may be compiled for it.
    """

    compiles = True

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    @property
    def backend(self) -> Backend:
        """The backend. Raises UsageError in a process forked since it was made."""
        if not self.is_own:
            raise UsageError(
                "an endpoint is used that was made before a fork, in the parent process",
                hint="make a new one in the child",
            )
        return self._backend

    @backend.setter
    def backend(self, backend: Backend) -> None:
        self._backend, self._pid = backend, os.getpid()

    @property
    def is_own(self) -> bool:
        """Whether this process made it."""
        return self._pid == os.getpid()

    def as_asked(self) -> Endpoint:
        """Returns the endpoint that programs run on if this one is given."""
        return self

    def with_adapter(self, name: str) -> Endpoint:
        """Returns the endpoint with requests for an adapter of the engine; for "", itself.

        Programs run on it as with the option `adapter`. Raises UsageError if it is not an engine's.
        """
        if not name:
            return self
        found = copy.copy(self)
        found.backend = self.backend.with_adapter(name)
        return found

    def trace_to(self, otlp: str) -> None:
        """Sends spans of its runs and their requests there: http://HOST:PORT, or "env", which reads
        OTEL_EXPORTER_OTLP_ENDPOINT (docs/observability.md)."""
        from sgc.runtime.executor.backends.traced import TracedBackend
        from sgc.runtime.telemetry.otlp import open_tracing

        self.backend = TracedBackend(self.backend, open_tracing(otlp, "sgc-run"))

    def begin_batch(self, function: Any, n_rows: int) -> None:
        """Called before the rows of a batch begin."""

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint itself; SGLang's `Runtime` has its connection under this name."""
        return self

    @property
    def model_info(self) -> dict[str, Any]:
        """What is known of the model; `model_path` always."""
        return {"model_path": self._capabilities().model}

    def get_model_name(self) -> str:
        return str(self.model_info["model_path"])

    @property
    def is_billed(self) -> bool:
        """Whether requests cost money: a provider answers them."""
        found = self._capabilities()
        return found.speculates or found.takes_messages

    def _capabilities(self) -> Capabilities:
        found: Capabilities = shared.run(self.backend.capabilities())
        return found

    @property
    def chat_template(self) -> Any:
        """The texts that the chat template puts around each role's content; it can be set."""
        return self._capabilities().chat

    @chat_template.setter
    def chat_template(self, template: Any) -> None:
        chat = getattr(template, "chat_format", template)
        if not isinstance(chat, ChatFormat):
            raise UsageError(f"chat_template must be a chat template, found {template!r}")
        self.backend = ChatOverride(self.backend, chat)

    def get_chat_template(self) -> Any:
        return self.chat_template

    def cache_prefix(self, prefix_str: str) -> None:
        """Makes the backend compute and cache a text."""
        shared.run(self.backend.commit_prefix((TextRun(prefix_str),)))

    def embed(self, texts: Sequence[str], normalize: bool = True) -> list[list[float]]:
        """Returns a vector for each text, of length one if `normalize`; for our own engine only."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise UsageError(
                "embed takes a list of texts", hint="embed([text])[0] is the vector of one text"
            )
        ask = getattr(self.backend, "embed", None)
        if ask is None:
            model = self.get_model_name()
            raise UsageError(
                f"{model} gives no embeddings here: only our own engine does, over gRPC",
                hint="start one with `sgc serve`, or use the provider's own client",
            )
        found = shared.run(ask(list(texts)))
        return [_of_length_one(vector) if normalize else list(vector) for vector in found]

    def get_server_info(self) -> dict[str, Any]:
        """Returns the server's description of itself, `tokenizer_path` included."""
        ask = getattr(self.backend, "server_info", None)
        model = self.get_model_name()
        found = {"model_path": model, "tokenizer_path": model}
        return found | dict(shared.run(ask())) if ask is not None else found

    def flush_cache(self) -> int:
        """Drops cached prefixes that nothing uses; returns the number of tokens freed."""
        return int(shared.run(self.backend.flush_cache()))  # type: ignore[attr-defined]

    def shutdown(self) -> None:
        """Closes the connection; does nothing in a forked child, which does not own it."""
        if self.is_own:
            shared.run(self.backend.close())

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *exc: object) -> None:
        self.shutdown()


def _of_length_one(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector) or 1.0
    return [number / length for number in vector]


class ChatOverride(Wrapping):
    """A backend with a chat template of the caller's choice."""

    def __init__(self, backend: Backend, chat: ChatFormat) -> None:
        super().__init__(backend)
        self._chat = chat

    async def capabilities(self) -> Capabilities:
        return replace(await super().capabilities(), chat=self._chat)

    async def close(self) -> None:
        await self.inner.close()


def require(modules: tuple[str, ...], what: str, extra: str) -> None:
    """Raises SgcError naming the extra to install, before an import deep inside fails."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise SgcError(
            f"{what} needs packages that are not installed: {', '.join(missing)}",
            hint=f"pip install 'sgc[{extra}]'",
        )
