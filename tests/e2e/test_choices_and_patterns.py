"""A `select` of single tokens is one step; a pattern of the same choices is one, too, and may well
choose otherwise: why no pass makes one of the other (docs/passes.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest

import sgc
from sgc.ir.text.parser import parse
from sgc.runs.endpoints import Runtime
from sgc.runtime.executor.run.loop import shared
from sgc.runtime.executor.run.options import RunOptions


def run(engine: Runtime, prompt: str, node: str) -> sgc.runtime.executor.run.record.RunResult:
    program = parse(
        "sgir 1\nprogram @p() {\n"
        f'  %s = stream "p"\n  %s1 = const %s {json.dumps(prompt)}\n  {node}\n  return %v\n}}\n'
    )
    return sgc.Program(program).run_once({}, RunOptions(seed=1), engine)


SELECT = '%s2, %v = select %s1 choices=["a", "b", "c"]'
PATTERN = '%s2, %v = gen %s1 max_tokens=8 temperature=0.0 regex="(a|b|c)"'


def steps_and_positions(engine: Runtime, node: str) -> tuple[int, int]:
    """What the engine runs beyond the prompt."""
    backend: Any = engine.backend
    engine.flush_cache()
    before = shared.run(backend.stats())
    (request,) = run(engine, "Answer:\n", node).requests
    after = shared.run(backend.stats())
    n_prompt = request.usage.prompt_tokens
    return after.steps - before.steps, after.positions_run - before.positions_run - n_prompt


@pytest.mark.sweep
@pytest.mark.parametrize("node", [SELECT, PATTERN])
def test_single_tokens_are_chosen_in_the_prompts_own_step(engine: Runtime, node: str):
    assert steps_and_positions(engine, node) == (1, 0)


def test_what_longer_patterns_say_is_decoded(engine: Runtime):
    longer = PATTERN.replace("(a|b|c)", "[a-z]{30}").replace("=8", "=40")
    n_steps, n_positions = steps_and_positions(engine, longer)
    assert n_steps > 1
    assert n_positions == n_steps - 1


def test_a_pattern_and_a_select_see_other_tokens(default_engine: Runtime):
    """After a space a choice is scored as ` b`, one token with it; a pattern decodes `b`."""
    asked = [run(default_engine, "3 cat ", node).requests[0] for node in (SELECT, PATTERN)]
    scored, generated = (request.reply for request in asked)
    starts = {choice.ids[0] for choice in scored.choices}
    assert generated.ids[0] not in starts
