"""Backends and programs that take their time, for tests of runs."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from waiting import BOUND_S

import sgc
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.interface.backend import Generated

WAYS = [True, False]  # jit

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 16


class Slow(ScriptedBackend):
    """Replies after `delay_s`; counts what is under way and what was begun."""

    def __init__(self, delay_s: float = 600.0, reply: Any = lambda p, s: "r") -> None:
        super().__init__(reply)
        self.delay_s, self.active, self.begun = delay_s, 0, 0

    async def generate(self, *args: Any, **kwargs: Any) -> Generated:
        self.active += 1
        self.begun += 1
        try:
            await asyncio.sleep(self.delay_s)
            return await super().generate(*args, **kwargs)
        finally:
            self.active -= 1


def bounded(call: Any) -> Any:
    """What a call gives; an error where it hangs."""
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(call).result(timeout=BOUND_S)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def programs(jit: bool) -> Any:
    @sgc.function(jit=jit)
    def program(s, q=""):
        s += "a" + q + sgc.gen("x")

    return program
