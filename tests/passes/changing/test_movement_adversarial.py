"""Prompts made to mislead code movement: nothing leads that may not."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benches" / "movement"))

from adversarial_prompts import MOVES, PROMPTS
from templates import Template, prefix, program

from sgc.passes.changing.hoist_prefix import hoist_prefix


def led(text: str) -> Counter[str]:
    """The words that come to stand in front of the first argument."""
    before = program(Template("t", (("", text),)))
    return Counter(prefix(hoist_prefix(before)).split()) - Counter(prefix(before).split())


def test_there_are_many() -> None:
    assert sum(map(len, PROMPTS.values())) >= 60


@pytest.mark.parametrize("construct", PROMPTS)
def test_nothing_leads_that_may_not(construct: str) -> None:
    wrong = {name: led(text) - Counter(may.split()) for name, text, may in PROMPTS[construct]}
    assert not {name: words for name, words in wrong.items() if words}


@pytest.mark.parametrize("text", MOVES)
def test_plain_instructions_still_lead(text: str) -> None:
    assert led(text)
