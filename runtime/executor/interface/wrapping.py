"""A backend that forwards to another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

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


class Wrapping(Backend):
    """Forwards all calls to a backend, but `close`; a subclass overrides some of them."""

    def __init__(self, backend: Backend) -> None:
        self.inner = backend

    async def capabilities(self) -> Capabilities:
        return await self.inner.capabilities()

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        return await self.inner.generate(prompt, sampling, on_delta)

    async def generate_n(
        self, prompt: Prompt, samplings: Sequence[Sampling]
    ) -> tuple[Generated, ...]:
        return await self.inner.generate_n(prompt, samplings)

    async def score(
        self, prompt: Prompt, choices: tuple[str, ...], unconditional: bool = False
    ) -> Scored:
        return await self.inner.score(prompt, choices, unconditional)

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        return await self.inner.commit_prefix(prompt, heads)

    async def prefetch(self, prompt: Prompt) -> Usage:
        return await self.inner.prefetch(prompt)

    def with_adapter(self, name: str) -> Self:
        found = object.__new__(type(self))  # `copy` would look for methods, also in `inner`
        found.__dict__.update(self.__dict__)
        found.inner = self.inner.with_adapter(name)
        return found

    async def close(self) -> None:
        """Does nothing: the endpoint closes the backend."""

    def __getattr__(self, name: str) -> Any:
        """Forwards the other attributes that an endpoint reads."""
        return getattr(self.inner, name)
