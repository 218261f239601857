"""Runs programs with control flow, interpreted and compiled, on replies that reach every arm."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from typing import Any
from zlib import crc32

from property_tests import IS_WHOLE
from tests_support import asked, results

from sgc.errors import ProgramRaised, SgcError, TraceError
from sgc.ir.file.sgir import from_bytes, to_bytes
from sgc.ir.graph import Graph
from sgc.lang.tools import Tool, resolve_tools
from sgc.passes.pipeline import optimize
from sgc.programs.function import Function
from sgc.runs.endpoint import Endpoint
from sgc.runtime.executor.backends.scripted import ScriptedBackend
from sgc.runtime.executor.interface.backend import Generated, OnDelta, Prompt, Sampling
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.checking.comparing import without_module
from sgc.tracing.checking.scripted_replies import obeying
from sgc.tracing.failing import message_of
from sgc.tracing.paths.exploration import Budget
from sgc.tracing.tracer import trace

BUDGET = Budget(work=10**9)
MAX_ASKED = 60
MOST_TURNS = 30  # of the event loop, which a reply takes
MAX_ASKED_CHARS = 20_000_000  # of all prompts, those of selects included


def replying(seed: int, pool: Sequence[str], asked: Counter[str] | None = None) -> Endpoint:
    """An endpoint that draws each reply from some texts by a hash of the prompt.

    asked: counts the requests, by their prompt and seed or choices.
    """
    n_asked = n_chars = 0

    def note(text: str, what: object) -> None:
        nonlocal n_chars
        n_chars += len(text)
        if n_chars > MAX_ASKED_CHARS:
            raise SgcError("enough")
        if asked is not None:
            asked[f"{len(text)}/{pick(text, 2**60)}/{what!r}"] += 1

    def pick(key: str, n: int) -> int:
        return int.from_bytes(hashlib.sha256(f"{seed}/{key}".encode()).digest()[:8], "big") % n

    def reply(prompt: Any, sampling: Any) -> str:
        nonlocal n_asked
        n_asked += 1
        if n_asked > MAX_ASKED:
            raise SgcError("enough")
        text = "".join(segment.text for segment in prompt)
        note(text, sampling.seed)
        return obeying(sampling, pick(f"{text}/{sampling.seed}", 2**30), pool)

    def prefer(prompt: Any, choices: tuple[str, ...]) -> int:
        text = "".join(segment.text for segment in prompt)
        note(text, choices)
        return pick(f"{text}/{choices}", len(choices))

    return Endpoint(_Late(reply, prefer))


class _Late(ScriptedBackend):
    """Its replies take turns of the event loop by a hash of their prompts, so that later requests
    are often answered first."""

    async def generate(
        self, prompt: Prompt, sampling: Sampling, on_delta: OnDelta | None = None
    ) -> Generated:
        for _ in range(crc32(f"{prompt}/{sampling.seed}".encode()) % MOST_TURNS):
            await asyncio.sleep(0)
        return await super().generate(prompt, sampling, on_delta)


# Errors by which a compiled run says, at its line, that the program must be interpreted.
REFUSALS = ("ProgramError", "DeoptReached", "NotAllowed", "Changed")


def agree_or_refuse(
    program: Any, compiled: Any, pool: Sequence[str], n: int, **arguments: Any
) -> None:
    """Asserts for `n` seeds that a compiled program's runs equal interpreted ones, or refuse."""
    has_q = any(each.name == "q" for each in program.signature.parameters)
    given = ({"q": "x"} if has_q else {}) | arguments
    for seed in range(n):
        wanted, found = (
            outcome(partial(each.run_once, given, RunOptions(seed=seed), replying(seed, pool)))
            for each in (program, compiled)
        )
        assert wanted != "ArgumentError", "the test gives other arguments than the program takes"
        if found not in REFUSALS:
            assert (found, repr(found)) == (wanted, repr(wanted)), seed


def outcome(run: Any) -> Any:
    """The results and requests of a run, or its error."""
    try:
        result = run()
    except ProgramRaised as error:
        kind, _, message = error.message.partition(": ")
        return f"{kind}: {without_module(message)}"
    except SgcError as error:
        return type(error).__name__
    except Exception as error:
        return f"{type(error).__name__}: {without_module(message_of(error))}"
    return results(result), asked(result)


@cache
def traced(function: Function) -> Graph:
    """The whole graph of a function of a module, for all tests that run it."""
    return trace(function, budget=Budget(), is_full=True)


def agree(
    function: Function,
    pool: Sequence[str],
    n: int = 12,
    budget: Budget = BUDGET,
    graph: Graph | None = None,
    tools: Sequence[Tool] = (),
    levels: tuple[int, int] = (0, 1),
    **arguments: Any,
) -> Graph:
    """Asserts that runs at two levels equal interpreted ones, for `n` seeds; returns the graph.

    With EXAMPLES=all, each seed's at both; else those of some of the seeds, at each level in turn.
    graph: what the function was traced to, to run it with other arguments.
    """
    from sgc.programs.program import Program

    graph = graph or trace(function, budget=budget, is_full=True)
    seen: set[str] = set()
    programs = [(level, Program(optimize(graph, level))) for level in levels]
    for seed in range(n):
        if seed >= _n_seeds(n) and len(seen) > 1:
            break
        options = RunOptions(seed=seed, allow_tools=resolve_tools(tools))

        def ran(each: Any, seed: int = seed, options: RunOptions = options) -> Any:
            return outcome(partial(each.run_once, arguments, options, replying(seed, pool)))

        wanted = ran(function)
        if _is_repeated(wanted, seen):
            continue
        for level, program in programs if IS_WHOLE else (programs[len(seen) % 2],):
            assert ran(program) == wanted, f"seed {seed} at -O{level}"
    assert len(seen) > 1, "the replies decide nothing"
    return graph


def _n_seeds(n: int) -> int:
    """How many of `n` seeds are run: all with EXAMPLES=all, else a third, or half of few."""
    return n if IS_WHOLE else min(n // 2, max(3, n // 3))


def _is_repeated(found: Any, seen: set[str]) -> bool:
    """Whether a run has had the same replies to the same requests before, but for their seeds."""
    told = re.sub(r"seed=\d+", "", repr(found))
    is_repeated = isinstance(found, tuple) and told in seen
    seen.add(told)
    return is_repeated


def agree_saved(function: Function, pool: Sequence[str], n: int = 6, **arguments: Any) -> Graph:
    """Asserts that a program is compiled whole, and that what is read from its `.sgir` does at -O0
    and -O2 what the interpreter does."""
    graph = from_bytes(to_bytes(trace(function, is_full=True)))
    return agree(function, pool, n, graph=graph, levels=(0, 2), **arguments)


def equal_or_refused(function: Function, pool: Sequence[str], n: int = 8) -> str:
    """Whether a program compiles to what is equal to it, or is refused with its line named."""
    try:
        graph = trace(function, is_full=True)
    except TraceError as refused:
        named = str(refused)
    else:
        agree(function, pool, n, graph=graph, q="x")
        return "equal"
    assert re.search(r"\.py:\d+", named), named
    return "refused"
