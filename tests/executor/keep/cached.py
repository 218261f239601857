"""Backends and programs whose replies are kept, for tests of the result cache."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import sgc
from sgc.errors import BackendError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import CAPABILITIES, ScriptedBackend
from sgc.runtime.executor.interface.backend import Sampling, TextRun, Usage


class Counting(ScriptedBackend):
    """Counts what is asked, and tells what it cost."""

    scope = "counting"

    def __init__(self, model: str = "scripted", fails: bool = False) -> None:
        super().__init__(lambda prompt, sampling: f" r{sampling.seed % 1000}")
        self.n_asked, self._model, self.fails = 0, model, fails

    async def capabilities(self):
        return replace(CAPABILITIES, model=self._model)

    async def generate(self, prompt, sampling, on_delta=None):
        self.n_asked += 1
        if self.fails:
            raise BackendError("gone")
        reply = await super().generate(prompt, sampling, on_delta)
        return replace(reply, usage=Usage(prompt_tokens=10, computed_tokens=10, cost_usd=0.5))

    async def score(self, *asked):
        self.n_asked += 1
        return await super().score(*asked)


@sgc.function
def answer(s, q: str):
    s += sgc.user(q) + sgc.assistant_begin()
    s += sgc.gen("greedy", temperature=0) + sgc.gen("own", seed=5) + sgc.gen("drawn")
    s += sgc.select("v", ["a", "b"]) + sgc.gen("many", n=2, seed=6)


N_REQUESTS = 3 + 1 + 2


def ask(folder, backend=None, interpret=False, **options):
    """A run, and how much was asked."""
    backend = backend or Counting()
    endpoint = sgc.cached(Endpoint(backend), folder)
    with endpoint:
        program = answer if interpret else answer.compile(check=False)
        how = sgc.runs.options.make_options(options)
        result = program.run_once({"q": "Q"}, how, endpoint)
    return result, backend.n_asked


RUN = TextRun("user: hi")


SAMPLING = Sampling(max_tokens=4, temperature=0.0)


def in_loop(work):
    return asyncio.run(work())
