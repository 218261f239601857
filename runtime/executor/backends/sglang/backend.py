"""A running SGLang server as a backend, over its native HTTP API.

Prompts are sent as text, which the server tokenizes: special tokens inside values are recognised,
and generated text is tokenized again with the text after it. Import this module lazily, as it needs
aiohttp. An object belongs to the event loop of its first use.

URLs:  http://host:port     plain text
       https://host:port    TLS; the certificate is checked against those of the PEM file
                            that `verify` names, else against the system's
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sgc.errors import BackendError
from sgc.runtime.executor.backends.sglang import wire as wire
from sgc.runtime.executor.backends.sglang.http import HttpClient, NotFound
from sgc.runtime.executor.backends.sglang.stream import SafeStream
from sgc.runtime.executor.interface.backend import (
    Backend,
    Generated,
    OnDelta,
    Prompt,
    Sampling,
    Scored,
    Usage,
)
from sgc.runtime.executor.interface.capabilities import Capabilities
from sgc.runtime.executor.prompts.chat_templates import template_for, template_named

TIMEOUT_S = 600.0
MAX_IN_FLIGHT = 256
# The API does not tell the context's size; the server refuses prompts that are too long.
UNKNOWN_CONTEXT = 2**31 - 1
_REFUSES = frozenset({"seed", "heal"})


class SGLangBackend(Backend):
    """A `Backend` (see `backend.py`) that sends requests to an SGLang server.

    model_info: the server's description of its model, such as `model_path`; empty before the first
    request. chat_template: a name in `chat_templates.py`; None to choose by the model's path.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        chat_template: str | None = None,
        timeout_s: float = TIMEOUT_S,
        max_in_flight: int = MAX_IN_FLIGHT,
        verify: str | None = None,
    ) -> None:
        self._chat = None if chat_template is None else template_named(chat_template)
        self._http = HttpClient(base_url, api_key, timeout_s, max_in_flight, verify)
        self._max_in_flight = max_in_flight
        self._asking: asyncio.Task[None] | None = None
        self._sends_all = False
        self.model_info: Mapping[str, Any] = MappingProxyType({})

    @property
    def scope(self) -> str:
        """What replies depend on beside the model's name."""
        return f"sglang {self._http.base}"

    # The Backend interface.

    async def capabilities(self) -> Capabilities:
        info = await self.info()
        chat = self._chat or template_for(info["model_path"])[1]
        return Capabilities(
            model=info["model_path"],
            chat=chat,
            max_context=UNKNOWN_CONTEXT,
            max_in_flight=self._max_in_flight,
            refuses=_REFUSES,
            unconditional=True,
            # A server whose model cannot see images would ignore them silently.
            images=info.get("has_image_understanding") is not False,
        )

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        if on_delta is None:
            return (await self._generate(prompt, sampling, 1))[0]
        await self.info()
        body = wire.generate_body(prompt, sampling, stream=True, sends_all=self._sends_all)
        shown = SafeStream(on_delta, sampling.stop)
        reply = await self._http.stream("generate", wire.encoded(body), shown)
        found = wire.generated_of(reply, sampling)
        shown.finish(found.text, reply["meta_info"])
        return found

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        """Makes one request with `n`; the server draws each reply separately."""
        if not samplings:
            return ()
        return await self._generate(prompt, samplings[0], len(samplings))

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        """Scores as SGLang's front end does: the prompt, all choices, then their tokens alone."""
        text = wire.prompt_text(prompt)
        (head,) = await self._ask(wire.prefill_body(prompt), 1)
        body = wire.choices_body(prompt, choices, wire.prompt_tokens_of(head))
        replies = await self._ask(body, len(choices))
        scored = [wire.choice_rows(reply, text) for reply in replies]
        alone: list[wire.Json] = []
        if unconditional:
            alone = await self._ask(wire.unconditional_body(scored), len(choices))
        scores = (
            wire.choice_score(reply, rows, alone[index] if unconditional else None)
            for index, (reply, rows) in enumerate(zip(replies, scored, strict=True))
        )
        return Scored(tuple(scores), wire.sum_usage([head, *replies, *alone]))

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        """Computes the prompt; its last token may differ when a head follows."""
        if not prompt:
            return Usage()
        (reply,) = await self._ask(wire.prefill_body(prompt), 1)
        return wire.usage_of(reply["meta_info"], is_prefill=True)

    async def close(self) -> None:
        """Closes the connections; unfinished calls fail."""
        await self._http.close()

    # Beyond the interface.

    async def info(self) -> Mapping[str, Any]:
        """The server's description of its model, requested once."""
        if not self.model_info:
            if self._asking is None or self._asking.done():
                self._asking = asyncio.create_task(self._ask_info())
            await asyncio.shield(self._asking)  # other callers wait for it too
        return self.model_info

    async def server_info(self) -> dict[str, Any]:
        """The server's settings and state."""
        return await self._get_object("get_server_info", "server_info")

    async def flush_cache(self) -> int:
        """Drops the server's cached prefixes; it does not tell how many tokens that freed."""
        await self._http.post("flush_cache", b"")
        return 0

    # Asking.

    async def _generate(self, prompt: Prompt, sampling: Sampling, n: int) -> tuple[Generated, ...]:
        await self.info()
        replies = await self._ask(
            wire.generate_body(prompt, sampling, n, sends_all=self._sends_all), n
        )
        return tuple([wire.generated_of(reply, sampling) for reply in replies])

    async def _ask(self, body: wire.Json, n: int) -> list[wire.Json]:
        """The n completions of a request."""
        reply = await self._http.post("generate", wire.encoded(body))
        return wire.replies_of(wire.parsed(reply), n)

    async def _ask_info(self) -> None:
        info = await self._get_object("get_model_info", "model_info")
        if not isinstance(info.get("model_path"), str):
            raise self._no_sglang()
        # If the server has its own defaults, leaving out a value is not neutral.
        self._sends_all = bool(info.get("preferred_sampling_params"))
        self.model_info = MappingProxyType(info)

    async def _get_object(self, *paths: str) -> dict[str, Any]:
        """The object at the first path that the server knows."""
        for path in paths:
            try:
                found = await self._http.get(path)
            except NotFound:
                continue
            if isinstance(found, dict):
                return found
        raise self._no_sglang()

    def _no_sglang(self) -> BackendError:
        return BackendError(
            f"what answers at {self._http.base} is no SGLang server",
            hint="give the address that `python -m sglang.launch_server` prints",
        )
