"""Programs that arrive over time, run with asyncio on any engine that makes token ids.

Drivers of peers import it, so it needs the standard library alone. A program is JSON: {"at_s",
"beginning": ids, "calls": [{"after": calls that must have ended, "base": the call that it goes on
from or null, "new": ids, "n_out", "wait_s": a tool's time, "left": tokens on the longest path from
its beginning to the program's end, as expected, "n_kept": how much of its prompt later calls may
begin with, null for all}]}.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Hint:
    """What a client with the program's graph knows of a call."""

    program: int
    left: int
    n_kept: int | None


Ask = Callable[[list[int], int, Hint], Awaitable[list[int]]]


async def run(programs: list[dict[str, Any]], ask: Ask) -> list[float]:
    """Seconds from each program's arrival to its last reply."""
    begin_s = time.perf_counter()

    async def timed(number: int, program: dict[str, Any]) -> float:
        due_s = begin_s + program["at_s"]
        await asyncio.sleep(due_s - time.perf_counter())
        await _run_one(number, program, ask)
        return time.perf_counter() - due_s

    return list(await asyncio.gather(*(timed(n, each) for n, each in enumerate(programs))))


async def _run_one(number: int, program: dict[str, Any], ask: Ask) -> None:
    tasks: list[asyncio.Task[list[int]]] = []

    async def call(asked: dict[str, Any]) -> list[int]:
        """The ids of the prompt and the reply."""
        for each in asked["after"]:
            await tasks[each]
        await asyncio.sleep(asked["wait_s"])
        base = program["beginning"] if asked["base"] is None else await tasks[asked["base"]]
        ids = [*base, *asked["new"]]
        hint = Hint(number, asked["left"], asked["n_kept"])
        return ids + await ask(ids, asked["n_out"], hint)

    for each in program["calls"]:
        tasks.append(asyncio.create_task(call(each)))
    await asyncio.gather(*tasks)
