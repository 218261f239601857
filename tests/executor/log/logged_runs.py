"""An agent whose runs are logged, for tests of the log."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import sgc
from sgc.runtime.executor.backends.scripted import CAPABILITIES, ScriptedBackend
from sgc.runtime.executor.interface.backend import (
    Usage,
)

DONE: list[str] = []


@sgc.tool(effect="pure")
def search(query: str) -> str:
    DONE.append(f"search {query}")
    return f"[{query}]"


@sgc.tool
def book(place: str) -> dict:
    DONE.append(f"book {place}")
    return {"place": place, "seats": [1, 2.5, None, True]}


@sgc.function
def agent(s, q):
    s += "Q: " + q + sgc.gen("query")
    s += search(s["query"]) + sgc.gen("many", n=3)
    s["booked"] = book(s["query"])
    s += sgc.select("choice", ["yes", "no"])
    group = s.fork(2)
    group += lambda i: f" {i}"
    group += sgc.gen("g")
    s += group[1]["g"]


class Counting(ScriptedBackend):
    """Counts what is asked; fails from the request number `fails_at` on."""

    def __init__(self, fails_at: float = math.inf, model: str = "scripted") -> None:
        super().__init__(self._answer, lambda prompt, choices: 1)
        self.n_asked, self.fails_at = 0, fails_at
        self._model = model

    def _answer(self, prompt, sampling):
        self._count()
        return f"r{sampling.seed % 1000}"

    def _count(self):
        if self.n_asked >= self.fails_at:
            raise ConnectionError("gone")
        self.n_asked += 1

    async def capabilities(self):
        return replace(CAPABILITIES, model=self._model)

    async def score(self, prompt, choices, unconditional=False):
        self._count()
        return await super().score(prompt, choices, unconditional)

    async def commit_prefix(self, prompt, heads=()):
        self._count()
        return Usage(prompt_tokens=3, computed_tokens=3)


N_REQUESTS = 1 + 3 + 1 + 1 + 2


WAYS = {
    "interpreted": lambda function, *args, **how: function.run_once(
        dict(zip("q", args, strict=False)),
        sgc.runs.options.make_options({n: v for n, v in how.items() if n != "backend"}),
        how["backend"],
    ),
    "compiled": lambda function, *args, **how: compiled(function).run(*args, **how),
}


@functools.cache
def compiled(function):
    return function.compile()


def outcome(result):
    streams = [(s.path, s.text, dict(s.variables)) for s in result.streams]
    return streams, [c.identity() for c in result.tool_calls]
