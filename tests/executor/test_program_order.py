"""A compiled run ends with the error that the interpreted one ends with, whatever comes first."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

import sgc
from sgc.lang.tools import resolve_tools
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.run.options import RunOptions

CALLED: list[str] = []


@sgc.tool(effect="effect")
def note(text: str) -> str:
    CALLED.append(text)
    return text


class _InOrder(ScriptedBackend):
    """Replies take more turns of the event loop by their place among some prompts' last letters."""

    def __init__(self, replies: dict[str, str], order: tuple[str, ...]) -> None:
        super().__init__(lambda prompt, sampling: replies[prompt[-1].text[-1]])
        self._order = order

    async def generate(self, prompt: Any, *rest: Any) -> Any:
        for _ in range(20 * self._order.index(prompt[-1].text[-1])):
            await asyncio.sleep(0)
        return await super().generate(prompt, *rest)


def ended(program: Any, replies: dict[str, str], order: tuple[str, ...]) -> str:
    CALLED.clear()
    options = RunOptions(allow_tools=resolve_tools([note, looked_up]))
    endpoint = Endpoint(_InOrder(replies, order))
    try:
        program.run_once({}, options, endpoint)
    except Exception as error:
        return str(getattr(error, "message", error)).rpartition(": ")[2]
    return "done"


@sgc.tool(effect="pure")
async def looked_up(text: str) -> str:
    for _ in range(50):
        await asyncio.sleep(0)
    if text != "ok":
        raise ValueError(text)
    return text


@sgc.function
def checked(t, word: str):
    t += word + sgc.gen("reply")
    if t["reply"] != "ok":
        raise ValueError(f"{word} {t['reply']}")


def three(s):
    forks = s.fork(3)
    for fork, letter in zip(forks, "ABC", strict=True):
        fork += letter + sgc.gen("x")
    return forks


@sgc.function
def straight(s):
    forks = three(s)
    a, b, c = forks
    _ = [int(a["x"]), int(b["x"]), int(c["x"])]
    note("end")
    forks.join()


@sgc.function
def maps(s):
    for words in (["A"], ["B", "C"]):
        states = sgc.map(checked, words)
        s += sgc.join("/", states["reply"])
    note("end")


@sgc.function
def noting(t, word: str):
    t += word + sgc.gen("reply")
    note(t["reply"])


@sgc.function
def tools(s):
    forks = three(s)
    a, b, c = forks
    looked_up(a["x"])
    note("after a")
    looked_up(b["x"])
    sgc.map(noting, ["C"])
    looked_up(c["x"])
    note("end")
    forks.join()


@sgc.function
def branches(s):
    forks = three(s)
    a, b, c = forks
    n = int(a["x"])
    if b["x"] == "1":
        n += int(c["x"])
    elif b["x"] == "bad":
        raise ValueError("no " + b["x"])
    note("end")
    forks.join()


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("program", "texts"),
    [
        (straight, ("1", "x", "y")),
        (maps, ("ok", "x", "y")),
        (tools, ("ok", "x", "y")),
        (branches, ("1", "bad", "x")),
    ],
)
def test_the_error_does_not_depend_on_which_reply_comes_first(program, texts):
    graph = program.compile(opt_level=1, check=False)
    found = set()
    for replies in itertools.product(texts, repeat=3):
        given = dict(zip("ABC", replies, strict=True))
        wanted = ended(program, given, ("A", "B", "C"))
        called = list(CALLED)
        found.add(wanted)
        for order in itertools.permutations("ABC"):
            assert ended(graph, given, order) == wanted, (given, order)
            assert called == CALLED, "nothing behind the error is called"
    assert "done" in found
    assert len(found) > 2
