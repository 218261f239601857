"""The prefetches of one connection: at most one per prompt at a time, and a few in all.

Rows of a batch prefetch the same prefixes. Sending and tokenizing a prompt has a cost even if it is
cached, so a second prefetch of a prompt waits for the first, and a prompt that was just prefetched
is not requested again. `engine/backend.py` uses it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from sgc.runtime.executor.interface.backend import Prompt, Usage

FRESH_S = 5.0
MAX_KNOWN = 64
MAX_AT_ONCE = 16


class Prefetches:
    """limit: requests that the engine accepts at a time; prefetches take up to a quarter."""

    def __init__(self, ask: Callable[[Prompt], Coroutine[Any, Any, Usage]], limit: int) -> None:
        self._ask = ask
        self._n_at_once = min(MAX_AT_ONCE, limit // 4)
        self._asking: dict[Prompt, asyncio.Task[Usage]] = {}
        self._n_waiting: dict[Prompt, int] = {}
        self._answered_s: dict[Prompt, float] = {}

    async def get(self, prompt: Prompt) -> Usage:
        """Prefetches a prompt; only the first caller gets the usage. Makes no request if the
        prompt was just prefetched or too many are open. The request is cancelled when all its
        callers are."""
        task, is_first = self._asking.get(prompt), False
        if task is None:
            if self._is_fresh(prompt) or len(self._asking) >= self._n_at_once:
                return Usage()
            task, is_first = asyncio.ensure_future(self._ask(prompt)), True
            self._asking[prompt] = task
        self._n_waiting[prompt] = self._n_waiting.get(prompt, 0) + 1
        try:
            usage = await asyncio.shield(task)
        finally:
            await self._leave(prompt, task)
        return usage if is_first else Usage()

    def forget(self) -> None:
        """Forgets what was prefetched, after the cache was flushed."""
        self._answered_s.clear()

    async def _leave(self, prompt: Prompt, task: asyncio.Task[Usage]) -> None:
        self._n_waiting[prompt] -= 1
        if self._n_waiting[prompt]:
            return
        del self._n_waiting[prompt], self._asking[prompt]
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        elif not task.cancelled() and task.exception() is None:
            self._note(prompt)

    def _is_fresh(self, prompt: Prompt) -> bool:
        answered_s = self._answered_s.get(prompt)
        return answered_s is not None and time.monotonic() < answered_s + FRESH_S

    def _note(self, prompt: Prompt) -> None:
        self._answered_s.pop(prompt, None)
        self._answered_s[prompt] = time.monotonic()
        if len(self._answered_s) > MAX_KNOWN:
            del self._answered_s[next(iter(self._answered_s))]
