"""What runs tell an engine: whose run a request belongs to, and what is left of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import sgc
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.hints.ahead import Told, told
from sgc.runtime.executor.interface.backend import Usage

N_TAKEN = 8


class Listening(ScriptedBackend):
    """Notes what is told with each request; its replies take N_TAKEN tokens."""

    def __init__(self) -> None:
        super().__init__(lambda prompt, sampling: "r")
        self.heard: list[tuple[str, Told | None]] = []

    async def generate(self, prompt, sampling, on_delta=None):
        self.heard.append((prompt[-1].text, told()))
        reply = await super().generate(prompt, sampling, on_delta)
        return replace(reply, usage=Usage(10, 0, 10, N_TAKEN))

    async def score(self, prompt, choices, unconditional=False):
        self.heard.append((prompt[-1].text, told()))
        return await super().score(prompt, choices, unconditional)


@sgc.function
def note(s, line):
    s += line + sgc.gen("note", max_tokens=20)


@sgc.function
def summed(s, lines: list[str]):
    notes = sgc.map(note, lines)
    s += "all: " + ", ".join(notes["note"]) + sgc.gen("sum", max_tokens=200)


@sgc.function
def chatting(s, q):
    s += q + sgc.gen("a", max_tokens=40)
    s += "more" + sgc.gen("b", max_tokens=60)
    s += "sure?" + sgc.select("c", choices=["yes", "no"])


def heard(function, n_runs: int = 1, **arguments):
    backend = Listening()
    graph = function.compile(check=False).graph
    for _ in range(n_runs):
        asyncio.run(run_graph(graph, backend, arguments))
    return backend.heard


def test_what_is_left_is_told_with_each_request() -> None:
    """Half of what may be generated, until something is known; a choice is one token."""
    found = [one.remaining for _, one in heard(chatting, q="q")]
    assert found[0] == 20 + 30 + 1
    assert found[2] == 1


def test_runs_are_told_apart_and_requests_of_one_are_not() -> None:
    numbers = [one.number for _, one in heard(chatting, 2, q="q")]
    assert len(set(numbers[:3])) == 1
    assert len(set(numbers[3:])) == 1
    assert numbers[0] != numbers[3]


def test_what_generations_took_is_told_by_later_runs() -> None:
    later = [one.remaining for _, one in heard(chatting, 4, q="q")][9:]
    assert later == [N_TAKEN + N_TAKEN + 1, N_TAKEN + 1, 1]


def test_mapped_calls_belong_to_their_run_and_end_with_what_follows_them() -> None:
    found = heard(summed, lines=["x", "y"])
    assert len({one.number for _, one in found}) == 1
    first, second, last = [one.remaining for _, one in found]
    assert first == 10 + 100
    assert second in (10 + 100, N_TAKEN + 100), "the first call may have ended"
    assert last == 100


def test_interpreted_runs_tell_whose_they_are_alone() -> None:
    backend = Listening()
    assert chatting.run("q", backend=Endpoint(backend))["a"] == "r"
    assert {one.remaining for _, one in backend.heard} == {None}
    assert len({one.number for _, one in backend.heard}) == 1


def test_outside_of_a_run_nothing_is_told() -> None:
    heard(chatting, q="q")
    assert told() is None


@sgc.function
def outer(s, lines: list[str]):
    states = sgc.map(summed_of, lines)
    s += ", ".join(states["sum"]) + sgc.gen("all", max_tokens=400)


@sgc.function
def summed_of(s, line):
    notes = sgc.map(note, line.split(" "))
    s += ", ".join(notes["note"]) + sgc.gen("sum", max_tokens=200)


def test_maps_in_maps_end_with_what_follows_them_all() -> None:
    found = heard(outer, lines=["x y"])
    assert found[0][1].remaining == 10 + 100 + 200
    assert [one.remaining for _, one in found[2:]] == [100 + 200, 200]
