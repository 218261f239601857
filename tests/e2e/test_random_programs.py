"""Random straight-line programs: compiled equals interpreted, passes keep requests."""

from __future__ import annotations

import random_programs
from tests_support import asked, results

from sgc.passes.pipeline import optimize
from sgc.programs.program import Program
from sgc.runs.endpoints import Runtime
from sgc.runtime.executor.run.options import RunOptions
from sgc.tracing.tracer import trace

ARGUMENTS = {"x": "Tea ", "y": " is\n", "n": 5}
N_SCRIPTED = 30
N_ENGINE = 5


def both(seed: int, endpoint, options: RunOptions) -> None:
    function = random_programs.random_program(seed)
    interpreted = function.run_once(ARGUMENTS, options, endpoint)
    graph = trace(function)
    for level in (0, 1):
        program = Program(optimize(graph, level))
        compiled = program.run_once(ARGUMENTS, options, endpoint)
        assert results(compiled) == results(interpreted), f"seed {seed} at -O{level}"
        if level == 0:
            assert asked(compiled) == asked(interpreted), f"seed {seed} at -O{level}"


def test_on_scripted_replies(scripted):
    random_programs.drawn.clear()
    endpoint = scripted(prefer=lambda prompt, choices: len(str(prompt)) % len(choices))
    for seed in range(N_SCRIPTED):
        both(seed, endpoint, RunOptions(seed=seed))
    assert set(random_programs.drawn) == set(random_programs._DO)
    assert min(random_programs.drawn.values()) > 10


def test_on_the_fake_model(fake_engine: Runtime):
    for seed in range(N_ENGINE):
        both(1000 + seed, fake_engine, RunOptions(seed=seed))
