"""Counts the tokens that an endpoint's runs took: `backend.token_usage`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from sgc.runtime.executor.interface.backend import (
    Backend,
    Generated,
    Prompt,
    Sampling,
    Scored,
    Usage,
)


class TokenUsage:
    """Tokens since it was made or reset. prompt_tokens counts cached ones too."""

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


class CountingBackend:
    """A backend whose use is added up; everything else is the backend's own."""

    def __init__(self, backend: Backend, usage: TokenUsage) -> None:
        self._backend = backend
        self._usage = usage

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: Callable[[str], None] | None = None
    ) -> Generated:
        found = await self._backend.generate(prompt, sampling, on_delta)
        self._usage.add(found.usage)
        return found

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        found = await self._backend.generate_n(prompt, samplings)
        for each in found:
            self._usage.add(each.usage)
        return found

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        found = await self._backend.score(prompt, choices, unconditional)
        self._usage.add(found.usage)
        return found

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        found = await self._backend.commit_prefix(prompt, heads)
        self._usage.add(found)
        return found

    async def prefetch(self, prompt: Prompt) -> Usage:
        return await self._backend.prefetch(prompt)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)
