"""An event loop that tells when it can only wait: all callbacks that could run have run.

A loop asks its selector to wait only when no callback is ready, so a selector that is asked to wait
is an exact sign, where a timer would be a guess. Work elsewhere is counted: calls on threads, which
come back to the loop, and the calls in `count_also` (tools).
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Watcher = Callable[[bool], bool]
"""Called when the loop would wait, on its thread, with whether anything is under way elsewhere that
will come back. Must not raise; returns whether it gave the loop something to do, were it a timer,
of which the loop's wait does not know yet."""


class Idle:
    """Whether a loop is idle. Watchers belong to the loop's thread."""

    def __init__(self) -> None:
        self.watchers: list[Watcher] = []
        self.n_on_threads = 0
        self._counts: list[Callable[[], int]] = []

    def new_loop(self) -> asyncio.AbstractEventLoop:
        return _Loop(self)

    def count_also(self, count: Callable[[], int]) -> None:
        """count: how many calls are under way that will wake the loop."""
        if count not in self._counts:
            self._counts.append(count)

    @property
    def is_busy(self) -> bool:
        return self.n_on_threads > 0 or any(count() for count in self._counts)

    def tell(self, is_busy: bool) -> bool:
        found = [watcher(is_busy) for watcher in tuple(self.watchers)]
        return any(found)

    def came_back(self, _: object) -> None:
        self.n_on_threads -= 1


class _Loop(asyncio.SelectorEventLoop):
    """Counts calls on threads until the loop has their results."""

    def __init__(self, idle: Idle) -> None:
        super().__init__(_Selector(idle))
        self._idle = idle

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._idle.n_on_threads += 1
        future.add_done_callback(self._idle.came_back)
        return future


class _Selector(selectors.DefaultSelector):
    def __init__(self, idle: Idle) -> None:
        super().__init__()
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        idle = self._idle
        if not idle.watchers or (timeout is not None and timeout <= 0):
            return super().select(timeout)
        # In this order: a call that ends between the two has written its wake-up before.
        is_busy = idle.is_busy
        events = super().select(0)
        if events or idle.tell(is_busy):
            return events
        return super().select(timeout)
