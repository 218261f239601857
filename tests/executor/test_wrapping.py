"""What is around a backend hands on all that it does not answer itself."""

from __future__ import annotations

import asyncio

import pytest

from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.interface.backend import TextRun, Usage
from sgc.runtime.executor.interface.place import Place
from sgc.runtime.executor.keep.recording import Recorder
from sgc.runtime.executor.keep.result_cache import ResultCache
from sgc.runtime.executor.keep.result_store import ResultStore
from sgc.runtime.executor.keep.single_flight import SingleFlight
from sgc.runtime.executor.log.logged_backend import LoggedBackend
from sgc.runtime.executor.log.run_log import RunLog

PROMPT = (TextRun("trunk"),)


class Inner(ScriptedBackend):
    """Takes note of what reaches it."""

    said = "only the backend knows"

    def __init__(self) -> None:
        super().__init__(lambda prompt, sampling: "r")
        self.reached: list[tuple[object, ...]] = []

    async def commit_prefix(self, prompt, heads=()):
        self.reached.append(("commit", prompt, heads))
        return Usage(prompt_tokens=7)

    async def prefetch(self, prompt):
        self.reached.append(("prefetch", prompt))
        return Usage(prompt_tokens=8)

    async def close(self):
        self.reached.append(("close",))


AROUND = {
    "shared": lambda inner, folder: SingleFlight(inner),
    "cached": lambda inner, folder: ResultCache(inner, ResultStore(folder, 1 << 20)),
    "recorded": lambda inner, folder: Recorder(inner, Recorder.begin(folder / "recording")),
    "logged": lambda inner, folder: LoggedBackend(inner, RunLog.open(folder / "log"), Place()),
}


@pytest.mark.parametrize("name", AROUND)
def test_what_is_not_answered_reaches_the_backend(name, tmp_path):
    async def main():
        inner = Inner()
        around = AROUND[name](inner, tmp_path)
        assert await around.capabilities() == await inner.capabilities()
        assert (await around.commit_prefix(PROMPT, ("a", "b"))).prompt_tokens == 7
        assert (await around.prefetch(PROMPT)).prompt_tokens == 8
        assert around.said == inner.said
        assert not hasattr(around, "nobody_knows")
        await around.close()
        assert inner.reached == [("commit", PROMPT, ("a", "b")), ("prefetch", PROMPT)]

    asyncio.run(main())
