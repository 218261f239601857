"""A backend that replies freely, and what asks it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

from waiting import BOUND_S, until

import sgc
from sgc.runtime.executor.backends.scripted import CAPABILITIES, ScriptedBackend
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.interface.backend import Generated, Usage
from sgc.runtime.executor.run.options import RunOptions
from sgc.runtime.executor.run.record import RunResult


class Free(ScriptedBackend):
    """Cannot decode under a constraint; replies in the given order, the last one for ever."""

    def __init__(self, *replies: str) -> None:
        super().__init__(lambda prompt, sampling: self._next())
        self.replies = list(replies)
        self.samplings: list[Any] = []

    def _next(self) -> str:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    async def capabilities(self):
        return replace(CAPABILITIES, refuses=frozenset({"regex", "json_schema"}))

    async def generate(self, prompt, sampling, on_delta=None) -> Generated:
        self.samplings.append(sampling)
        reply = await super().generate(prompt, sampling, on_delta)
        return replace(reply, usage=Usage(10, 0, 10, 5))


@sgc.function
def simple(s):
    s += "a" + sgc.gen("x")


def ask(backend: Any, options: RunOptions | None = None, **parameters: Any) -> RunResult:
    """The run of a program of one generation."""

    @sgc.function
    def one(s):
        s += "a" + sgc.gen("x", **parameters)

    graph = one.compile(check=False).graph
    return asyncio.run(asyncio.wait_for(run_graph(graph, backend, {}, options), BOUND_S))


def within(call: Any) -> Any:
    """What the call gives or raises; it is an error that it hangs."""
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(call())
        except BaseException as error:
            found.append(error)

    threading.Thread(target=work, daemon=True).start()
    until(lambda: found)
    return found[0]
