"""The backend of a dry run: requests get assumed replies, and are counted.

The executor runs a program on it as on any other, so its requests, their order and the path are
those of a run with these replies. The caller, `sgc/predict/`, supplies the replies (`Replies`) and
counts the cost (`Meter`). Nothing leaves the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Protocol

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
from sgc.runtime.executor.interface.place import Place
from sgc.runtime.executor.interface.wrapping import Wrapping
from sgc.runtime.executor.keep.single_flight import SingleFlight


class Replies(Protocol):
    """The assumed replies. Their `usage` needs `completion_tokens` only."""

    def generated(self, place: Place, prompt: Prompt, sampling: Sampling) -> Generated: ...

    def scored(
        self, place: Place, prompt: Prompt, choices: tuple[str, ...], unconditional: bool
    ) -> Scored: ...


class Meter(Protocol):
    """Counts what requests would use, in the order in which they are made."""

    def generate(
        self,
        place: Place,
        prompt: Prompt,
        samplings: Sequence[Sampling],
        replies: Sequence[Generated],
    ) -> list[Usage]:
        """Returns the usage of generations of one prompt that are requested together."""
        ...

    def score(
        self,
        place: Place,
        prompt: Prompt,
        choices: tuple[str, ...],
        reply: Scored,
        unconditional: bool,
    ) -> Usage: ...

    def commit(self, prompt: Prompt, heads: tuple[str, ...]) -> Usage: ...


class DryBackend(Wrapping):
    """The backend of one run, or of the rows of one batch; `at` returns the backend of a draw.
    shares: equal deterministic requests are made once, as from -O1 on.
    """

    def __init__(
        self, capabilities: Capabilities, replies: Replies, meter: Meter, shares: bool = False
    ) -> None:
        asked = _Asked(capabilities, replies, meter)
        super().__init__(SingleFlight(asked) if shares else asked)

    def at(self, place: Place) -> Backend:
        """The backend as one draw sees it."""
        return _Draw(self.inner, place)


class _Draw(Wrapping):
    """The backend of one draw, which numbers its requests."""

    def __init__(self, asked: Backend, place: Place) -> None:
        super().__init__(asked)
        self._place = place

    def _begin(self, n_requests: int = 1) -> None:
        """Sets the place of the next requests; a task that makes them inherits it."""
        _asking.set(self._place)
        self._place = replace(self._place, number=self._place.number + n_requests)

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        self._begin()
        return await super().generate(prompt, sampling, on_delta)

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        self._begin(len(samplings))
        return await super().generate_n(prompt, samplings)

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        self._begin()
        return await super().score(prompt, choices, unconditional)


_asking: ContextVar[Place] = ContextVar("asking", default=Place())  # noqa: B039  # it is frozen


class _Asked(Backend):
    """Answers and counts the requests that are made."""

    def __init__(self, capabilities: Capabilities, replies: Replies, meter: Meter) -> None:
        self._capabilities = capabilities
        self._replies = replies
        self._meter = meter

    async def capabilities(self) -> Capabilities:
        return self._capabilities

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        (reply,) = await self.generate_n(prompt, (sampling,))
        if on_delta is not None and reply.text:
            on_delta(reply.text)
        return reply

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        place = _asking.get()
        replies = [
            self._replies.generated(replace(place, number=place.number + n), prompt, sampling)
            for n, sampling in enumerate(samplings)
        ]
        usages = self._meter.generate(place, prompt, samplings, replies)
        await asyncio.sleep(0)  # concurrent requests are made before any is answered
        both = zip(replies, usages, strict=True)
        return tuple([replace(reply, usage=usage) for reply, usage in both])

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        place = _asking.get()
        reply = self._replies.scored(place, prompt, choices, unconditional)
        usage = self._meter.score(place, prompt, choices, reply, unconditional)
        await asyncio.sleep(0)
        return replace(reply, usage=usage)

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        usage = self._meter.commit(prompt, heads)
        await asyncio.sleep(0)
        return usage

    async def prefetch(self, prompt: Prompt) -> Usage:
        return await self.commit_prefix(prompt)
