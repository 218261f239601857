"""Random programs, every constant of theirs worth a prefetch: nothing changes but what is fetched,
and that is what prompts begin with.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import random_control_runs as control
import random_programs
from control_flow import outcome, replying
from random_control import Generator
from tests_support import asked, results

from sgc.errors import SgcError
from sgc.ir.graph import Graph
from sgc.lang.tools import resolve_tools, tools_in
from sgc.passes.exact import fold_constants
from sgc.passes.hints import insert_prefetch
from sgc.passes.pipeline import run_pass
from sgc.programs.program import Program
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.interface.backend import Prompt, Usage
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace


class Hinted:
    """A scripted backend that takes note of what is prefetched, and of what is asked."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.prefetched: list[str] = []
        self.asked: list[str] = []

    async def capabilities(self) -> Any:
        return replace(await self._backend.capabilities(), prefetches=True)

    async def prefetch(self, prompt: Prompt) -> Usage:
        self.prefetched.append(text_of(prompt))
        return Usage()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._backend, name)
        if name not in ("generate", "generate_n", "score", "commit_prefix"):
            return method

        def ask(prompt: Prompt, *more: Any) -> Any:
            self.asked.append(text_of(prompt))
            return method(prompt, *more)

        return ask


def text_of(prompt: Prompt) -> str:
    return "".join(segment.text for segment in prompt)


@pytest.fixture(autouse=True)
def every_text_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insert_prefetch, "MIN_CHARS", 1)
    monkeypatch.setattr(insert_prefetch, "MAX_PREFETCHES", 1000)


def hinted(graph: Graph) -> Graph:
    made = run_pass(insert_prefetch.PASS, run_pass(fold_constants.PASS, graph))
    assert run_pass(insert_prefetch.PASS, made) is made
    return made


@pytest.mark.parametrize(
    "seeds", [range(10), pytest.param(range(10, 600), marks=pytest.mark.slow)], ids=str
)
def test_of_a_straight_line_what_is_fetched_is_asked_with(seeds: range, scripted: Any) -> None:
    n_hinted = sum(n_prefetched(seed, scripted) > 0 for seed in seeds)
    assert n_hinted > len(seeds) // 10


def n_prefetched(seed: int, scripted: Any) -> int:
    graph = trace(random_programs.random_program(seed))
    arguments = {"x": "Tea ", "y": " is\n", "n": 5}
    endpoint = scripted(prefer=lambda prompt, choices: len(str(prompt)) % len(choices))
    backend = Hinted(endpoint.backend)
    plain = Program(graph).run_once(arguments, RunOptions(seed=seed), endpoint)
    ahead = Program(hinted(graph)).run_once(arguments, RunOptions(seed=seed), Endpoint(backend))
    assert results(ahead) == results(plain)
    assert asked(ahead) == asked(plain)
    for text in backend.prefetched:
        assert any(prompt.startswith(text) for prompt in backend.asked), text
    return len(backend.prefetched)


def modules(seeds: range) -> Iterator[tuple[Any, Graph]]:
    """Programs with control flow that can be traced."""
    for seed in seeds:
        name = f"random_control_{seed}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                module = control.load(Generator(seed).program().source(), str(seed))
                yield module, trace(module.program, budget=control.BUDGET, is_full=True)
            except SgcError:
                continue  # over the budget
            finally:
                sys.modules.pop(name, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", [range(12, 18), pytest.param(range(2, 300), marks=pytest.mark.slow)], ids=str
)
def test_with_control_flow_nothing_else_changes(seeds: range) -> None:
    n_programs = n_hinted = n_asked_with = n_fetched = 0
    for module, graph in modules(seeds):
        made, allowed = hinted(graph), resolve_tools(tools_in(module))
        n_programs, n_hinted = n_programs + 1, n_hinted + (made is not graph)
        for seed, pool in enumerate(control.POOLS):
            options = RunOptions(seed=seed, allow_tools=allowed)
            backend = Hinted(replying(seed, pool).backend)
            found = []
            for program, endpoint in (
                (Program(graph), replying(seed, pool)), (Program(made), Endpoint(backend)),
            ):  # fmt: skip
                module.LOG.clear()
                given = control.ARGUMENTS[seed % 2], options, endpoint
                run = outcome(lambda p=program, g=given: p.run_once(*g))
                found.append((run, sorted(module.LOG)))
            assert control.same(*found), control.told(*found)
            n_fetched += len(backend.prefetched)
            n_asked_with += sum(
                any(prompt.startswith(text) for prompt in backend.asked)
                for text in backend.prefetched
            )
    assert n_hinted >= n_programs // 3
    assert n_asked_with > n_fetched // 4, "else it is of arms that were not taken"
