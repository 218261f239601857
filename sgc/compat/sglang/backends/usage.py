"""Counts the tokens that an endpoint's runs used: `backend.token_usage`."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sgc.runtime.executor.interface.backend import (
    Backend,
    Generated,
    OnDelta,
    Prompt,
    Sampling,
    Scored,
    Usage,
)
from sgc.runtime.executor.interface.wrapping import Wrapping


class TokenUsage:
    """The tokens used since it was made or reset. prompt_tokens includes cached tokens."""

    def __init__(self, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        self._lock = threading.Lock()
        self.prompt_tokens, self.completion_tokens = prompt_tokens, completion_tokens

    def reset(self) -> None:
        self.prompt_tokens = self.completion_tokens = 0

    def add(self, usage: Usage) -> None:
        with self._lock:  # counted on the event loop, reset by programs on their own threads
            self.prompt_tokens += usage.prompt_tokens
            self.completion_tokens += usage.completion_tokens

    def __repr__(self) -> str:
        return (
            f"TokenUsage(prompt_tokens={self.prompt_tokens}, "
            f"completion_tokens={self.completion_tokens})"
        )


class CountingBackend(Wrapping):
    """A backend whose token usage is added up."""

    def __init__(self, backend: Backend, usage: TokenUsage) -> None:
        super().__init__(backend)
        self._usage = usage

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        found = await super().generate(prompt, sampling, on_delta)
        self._usage.add(found.usage)
        return found

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        found = await super().generate_n(prompt, samplings)
        for each in found:
            self._usage.add(each.usage)
        return found

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        found = await super().score(prompt, choices, unconditional)
        self._usage.add(found.usage)
        return found

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        found = await super().commit_prefix(prompt, heads)
        self._usage.add(found)
        return found

    async def close(self) -> None:
        await self.inner.close()
