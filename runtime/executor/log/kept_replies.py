"""A backend with a store of replies: a request whose reply is in the store is not made again."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sgc.runtime.executor.interface.backend import (
    Generated,
    OnDelta,
    Prompt,
    Sampling,
    Scored,
)
from sgc.runtime.executor.interface.log import Json
from sgc.runtime.executor.interface.wrapping import Wrapping
from sgc.runtime.executor.log.records import (
    generated_json,
    generated_of,
    scored_json,
    scored_of,
)

T = TypeVar("T")


class KeptReplies(Wrapping):
    """The base of such backends: a subclass makes keys of requests, and finds and keeps replies."""

    @abstractmethod
    async def generation(self, prompt: Prompt, sampling: Sampling) -> Any:
        """Returns the key of a generation; None if its reply is not kept."""

    @abstractmethod
    async def choice(self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool) -> Any:
        """Returns the key of a request for the scores of choices."""

    @abstractmethod
    async def find(self, request: Any, decode: Callable[[Json], T]) -> T | None:
        """Returns the kept reply; None if there is none."""

    @abstractmethod
    async def keep(self, request: Any, reply: Json, start_s: float) -> None:
        """Keeps a reply. start_s: when the request was made, on the monotonic clock."""

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        request = await self.generation(prompt, sampling)
        if request is None:
            return await super().generate(prompt, sampling, on_delta)
        found = await self.find(request, generated_of)
        if found is not None:
            if on_delta is not None and found.text:
                on_delta(found.text)
            return found
        start_s = time.monotonic()
        reply = await super().generate(prompt, sampling, on_delta)
        await self.keep(request, generated_json(reply), start_s)
        return reply

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        """Makes one request for all missing replies."""
        requests = [await self.generation(prompt, sampling) for sampling in samplings]
        if None in requests:
            return await super().generate_n(prompt, samplings)
        replies = [await self.find(request, generated_of) for request in requests]
        missing = [n for n, reply in enumerate(replies) if reply is None]
        if missing:
            start_s = time.monotonic()
            asked = await super().generate_n(prompt, [samplings[n] for n in missing])
            for n, reply in zip(missing, asked, strict=True):
                await self.keep(requests[n], generated_json(reply), start_s)
                replies[n] = reply
        return tuple(reply for reply in replies if reply is not None)

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        request = await self.choice(prompt, choices, unconditional)
        found = await self.find(request, scored_of)
        if found is not None:
            return found
        start_s = time.monotonic()
        reply = await super().score(prompt, choices, unconditional)
        await self.keep(request, scored_json(reply), start_s)
        return reply
