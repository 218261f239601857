"""Runs: order, overlap, the fork's trunk first, failure, cancellation, seeds, choices."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest
from waiting import BOUND_S, settle

import sgc
from sgc.errors import ArgumentError, BackendError, ContextExceeded, ProgramError
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.executor import run_graph
from sgc.runtime.executor.interface.backend import ChoiceScore, Generated, Usage
from sgc.runtime.executor.interface.choice_methods import METHODS, pick
from sgc.runtime.executor.interface.seeds import draw_seed
from sgc.runtime.executor.log.timeline import chrome_trace
from sgc.runtime.executor.run.options import RunOptions


class SlowBackend(ScriptedBackend):
    """Keeps a log of what begins and ends, and waits where it is told to."""

    def __init__(self, wait: Any = None) -> None:
        super().__init__(lambda prompt, sampling: "r")
        self.log: list[str] = []
        self._wait = wait or (lambda label: settle())

    async def _logged(self, label: str, work: Any) -> Any:
        self.log.append(f"+{label}")
        try:
            await self._wait(label)
            return await work
        finally:
            work.close()
            self.log.append(f"-{label}")

    async def generate(self, prompt, sampling, on_delta=None) -> Generated:
        text = "".join(segment.text for segment in prompt)
        return await self._logged(f"gen {text}", super().generate(prompt, sampling, on_delta))

    async def commit_prefix(self, prompt, heads=()) -> Usage:
        text = "".join(segment.text for segment in prompt)
        return await self._logged(f"commit {text}", super().commit_prefix(prompt, heads))


@sgc.function
def forked(s, x):
    s += x
    group = s.fork(3)
    group += lambda i: f" {i}"
    group += sgc.gen("g")
    s += " trunk" + sgc.gen("t")


def test_the_trunk_is_committed_before_its_children_and_they_overlap():
    backend = SlowBackend()
    graph = forked.compile().graph
    result = asyncio.run(run_graph(graph, backend, {"x": "X"}))
    assert backend.log[:2] == ["+commit X", "-commit X"]
    assert set(backend.log[2:6]) == {
        "+gen X 0", "+gen X 1", "+gen X 2", "+gen X trunk",
    }  # fmt: skip
    assert result.stats.commits == 1


@sgc.function
def child(s, x):
    s += "child " + x + sgc.gen("c")


@sgc.function
def parallel(s):
    s += "p"
    states = [child(str(i)) for i in range(3)]
    s += "".join(state["c"] for state in states)


def test_calls_run_side_by_side_and_the_trace_shows_it():
    backend = SlowBackend()
    result = asyncio.run(run_graph(parallel.compile().graph, backend, {}))
    assert [entry[0] for entry in backend.log] == ["+", "+", "+", "-", "-", "-"]
    events = [e for e in chrome_trace(result)["traceEvents"] if e["ph"] == "X"]
    assert len({e["tid"] for e in events}) == 3
    latest_start = max(e["ts"] for e in events)
    assert latest_start < min(e["ts"] + e["dur"] for e in events)


def test_the_first_error_ends_the_run_and_cancels_the_rest():
    async def wait(label: str) -> None:
        if label == "gen child 1":
            await settle()  # the others have begun
            raise ContextExceeded("too long")
        await asyncio.Event().wait()

    backend = SlowBackend(wait)
    with pytest.raises(ContextExceeded) as caught:
        asyncio.run(asyncio.wait_for(run_graph(parallel.compile().graph, backend, {}), BOUND_S))
    assert caught.value.where.startswith("test_instance.py:")
    assert sorted(backend.log) == sorted(f"{c}gen child {i}" for i in range(3) for c in "+-")


def test_cancelling_a_run_cancels_its_requests():
    async def main() -> SlowBackend:
        backend = SlowBackend(lambda label: asyncio.Event().wait())
        task = asyncio.create_task(run_graph(parallel.compile().graph, backend, {}))
        while len(backend.log) < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=BOUND_S)
        assert done
        assert task.cancelled()
        return backend

    assert len(asyncio.run(main()).log) == 6


def test_a_failing_commit_fails_the_run_at_the_fork():
    class Broken(SlowBackend):
        async def commit_prefix(self, prompt, heads=()) -> Usage:
            raise RuntimeError("no commit")

    with pytest.raises(ProgramError, match="no commit") as caught:
        asyncio.run(run_graph(forked.compile().graph, Broken(), {"x": "X"}))
    assert caught.value.where.startswith("test_instance.py:")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "missing argument 'n'"),
        ({"n": "3"}, "'n' must be int, found str '3'"),
        ({"n": True}, "'n' must be int, found bool True"),
        ({"n": 1, "m": 2}, "unknown argument 'm'"),
        ({"n": 1, "x": 4}, "'x' must be text, found int 4"),
        (
            {"n": 1, "xs": [["a"], ["b", 3]]},
            r"list\[list\[text\]\]: xs\[1\]\[1\] must be text, found int 3",
        ),
        (
            {"n": 1, "xs": ["a"]},
            r"list\[list\[text\]\]: xs\[0\] must be list\[text\], found str 'a'",
        ),
    ],
)
def test_arguments_are_checked_before_anything_is_asked(arguments, message):
    @sgc.function
    def typed(s, n: int, x: str = "d", xs: list[list[str]] = ()):
        s += f"{n}{x}" + sgc.gen("g")
        for each in xs:
            s += "".join(each)

    backend = SlowBackend()
    with pytest.raises(ArgumentError, match=message):
        asyncio.run(run_graph(typed.compile().graph, backend, arguments))
    with pytest.raises(ArgumentError, match=message):
        typed.run(backend=backend, **arguments)
    assert backend.log == []


def test_seeds_depend_on_run_row_stream_and_ordinal_alone():
    drawn = {
        draw_seed(seed, row, path, ordinal)
        for seed in (0, 1)
        for row in ("0", "1")
        for path in ("p", "p/:0.0", "p/:0.1")
        for ordinal in (0, 1)
    }
    assert len(drawn) == 24
    assert draw_seed(0, "1", "p", 0) != draw_seed(0, "", "1\0p", 0)


def test_a_runs_draws_repeat_with_its_seed_and_differ_between_streams():
    def seeds(seed: int) -> list[int]:
        run = run_graph(parallel.compile().graph, SlowBackend(), {}, RunOptions(seed=seed))
        return sorted(r.sampling.seed for r in asyncio.run(run).requests)

    assert seeds(1) == seeds(1) != seeds(2)
    assert len(set(seeds(1))) == 3


def _scores(*rows: tuple[float, ...]) -> list[ChoiceScore]:
    return [ChoiceScore(tuple(range(len(row))), row) for row in rows]


def test_choice_methods():
    alone = ((None, -1.0), (None,), (None, -20.0))
    scores = [
        replace(score, unconditional=without)
        for score, without in zip(_scores((-1.0, -1.0), (-1.5,), (-0.5, -9.0)), alone, strict=True)
    ]
    best = {name: method(scores).index(max(method(scores))) for name, method in METHODS.items()}
    assert best == {
        "token_length_normalized": 0,
        "greedy_token_selection": 2,
        "unconditional_likelihood_normalized": 2,
        "joint": 1,
    }


def test_a_choice_is_drawn_in_proportion_to_its_probability():
    scores = _scores((math.log(0.7),), (math.log(0.2),), (math.log(0.1),))
    n = 1000
    drawn = [pick(scores, "joint", 1.0, (i + 0.5) / n) for i in range(n)]
    assert [drawn.count(i) for i in range(3)] == [700, 200, 100]


def test_thousands_of_nodes_do_not_recurse():
    @sgc.function
    def long(s, x):
        for _ in range(1000):
            s += x
            s += "y"

    graph = long.compile(check=False, opt_level=0).graph
    result = asyncio.run(run_graph(graph, SlowBackend(), {"x": "x"}))
    assert result.text() == "xy" * 1000


def test_endpoint_is_a_context_manager():
    with Endpoint(SlowBackend()) as endpoint:
        assert forked.run(x="a", backend=endpoint)["t"] == "r"


def test_a_reply_that_cannot_be_summed_ends_the_run():
    """What fails after the last node fails the run; in its task it would be lost."""

    class Odd(ScriptedBackend):
        async def generate(self, prompt, sampling, on_delta=None):
            found = await super().generate(prompt, sampling, on_delta)
            return replace(found, usage=replace(found.usage, prompt_tokens="many"))

    backend = Endpoint(Odd(lambda prompt, sampling: "r"))
    for run in (forked.run_once, forked.compile().run_once):
        with pytest.raises(ProgramError, match="TypeError"):
            run({"x": "a"}, RunOptions(seed=1), backend)


def test_scores_of_other_choices_are_an_error():
    class Other(ScriptedBackend):
        async def score(self, prompt, choices, unconditional=False):
            return await super().score(prompt, choices[:1], unconditional)

    @sgc.function
    def chosen(s):
        s += "a" + sgc.select("x", ["b", "c"])

    with pytest.raises(BackendError, match="scores 1 choices, not the 2 of the request"):
        chosen.run(backend=Endpoint(Other(lambda prompt, sampling: "r"))).sync()
