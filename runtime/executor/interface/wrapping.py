"""A backend that forwards to another one."""

from __future__ import annotations

from typing import Any

from sgc.runtime.executor.interface.backend import Backend, Capabilities, Prompt, Usage


class Wrapping:
    """Forwards to a backend, which its endpoint closes. Subclasses generate and score."""

    def __init__(self, backend: Backend) -> None:
        self.inner = backend

    async def capabilities(self) -> Capabilities:
        return await self.inner.capabilities()

    async def commit_prefix(self, prompt: Prompt, heads: tuple[str, ...] = ()) -> Usage:
        return await self.inner.commit_prefix(prompt, heads)

    async def prefetch(self, prompt: Prompt) -> Usage:
        return await self.inner.prefetch(prompt)

    async def close(self) -> None:
        """The backend is its endpoint's to close."""

    def __getattr__(self, name: str) -> Any:
        """Forwards the other attributes that an endpoint reads."""
        return getattr(self.inner, name)
