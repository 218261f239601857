"""The prefetches of one connection: each prompt is requested once at a time, a few in all.

Rows of a batch prefetch the same prefixes. To send and tokenize a prompt costs something even where
it is cached, so a prefetch of a prompt that is on its way waits for that one, and a prompt that was
just prefetched is not requested again. Used by `engine/backend.py`.
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
    """limit: requests that the engine takes at a time; prefetches are a quarter of them at most."""

    def __init__(self, ask: Callable[[Prompt], Coroutine[Any, Any, Usage]], limit: int) -> None:
        self._ask = ask
        self._n_at_once = min(MAX_AT_ONCE, limit // 4)
        self._asking: dict[Prompt, asyncio.Task[Usage]] = {}
        self._n_waiting: dict[Prompt, int] = {}
        self._answered_s: dict[Prompt, float] = {}

    async def get(self, prompt: Prompt) -> Usage:
        """Returns the usage, to the first caller alone. Makes no request where it would be useless
        or there are too many. The request is cancelled once all its callers are."""
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
        """What was computed is there no more."""
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
