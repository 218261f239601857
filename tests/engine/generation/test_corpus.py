"""The corpus of constrained decoding through a server: a part of what `benches/generation` runs.

All of it: `python -P benches/generation/constraints.py` and `hostile.py`.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[3] / "benches"))

from generation import constraints, hostile

from sgc.runtime.engine.launch import EmbeddedEngine
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.text.tokenizer import load_tokenizer
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import Sampling, TextRun

SEED = 5
N_OF_A_KIND = 15
N_HOSTILE = 60
LONGEST_S = 5.0  # all take under 1 s on an idle machine


@pytest.fixture(scope="module")
def default_model() -> Iterator[EmbeddedEngine]:
    """An engine on the default model, its books checked after every step."""
    with EmbeddedEngine("default", ["--check"]) as running:
        yield running


@pytest.mark.slow
def test_what_is_generated_is_what_was_asked_for(default_model: EmbeddedEngine) -> None:
    draw = random.Random(SEED)
    by_group: dict[str, list[constraints.Entry]] = {"regexes": [], "schemas": []}
    for entry in constraints.entries():
        by_group.get(entry.group, []).append(entry)
    asked = [(entry, SEED) for of in by_group.values() for entry in draw.sample(of, N_OF_A_KIND)]
    tokenizer = load_tokenizer(DEFAULT_FOLDER)
    outcomes = asyncio.run(constraints.generate(default_model.uri, asked, tokenizer))
    assert [each for each in outcomes if each.refusal or each.is_invalid] == []
    n_complete = {
        group: sum(each.is_complete for each in outcomes if each.entry.group == group)
        for group in by_group
    }
    assert min(n_complete.values()) > N_OF_A_KIND / 2


@pytest.mark.slow
def test_hostile_constraints_are_answered(default_model: EmbeddedEngine) -> None:
    async def main() -> list[hostile.Answer]:
        async with EngineBackend(default_model.uri) as backend:
            asked = enumerate(hostile.items(N_HOSTILE, SEED))
            answers = [await hostile.ask(backend, index, item) for index, item in asked]
            await backend.generate((TextRun("Hello"),), Sampling(max_tokens=4))  # as if nothing was
            stats = await backend.stats()
            assert (stats.running_requests, stats.waiting_requests) == (0, 0)
            return answers

    answers = asyncio.run(main())
    assert [each for each in answers if not each.is_answered or each.seconds > LONGEST_S] == []
    assert {each.outcome for each in answers} == {"text", "refused"}
