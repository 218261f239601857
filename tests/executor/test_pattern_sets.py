"""The characters that sets of patterns match, as Python's matcher finds them."""

from __future__ import annotations

import random
import re
from re import _parser  # type: ignore[attr-defined]

import pytest

from sgc.runtime.executor.patterns.regex_classes import (
    _every_character,
    _frozen,
    _joined,
    _matched,
    _runs,
)

PARTS = (r"\w", r"\d", r"\s", r"\W", r"\D", r"\S", "a", r"\-", "é", "🙂", "a-f", "0-9", "Ā-\u2000")


def test_every_character_is_there_once() -> None:
    assert _every_character() == "".join(map(chr, range(0x110000)))


@pytest.mark.parametrize("seed", range(12))
def test_a_set_has_the_characters_that_python_finds(seed: int) -> None:
    rng = random.Random(seed)
    parts = "".join(rng.choices(PARTS, k=rng.randint(1, 4)))
    pattern = rng.choice([f"[{parts}]", f"[^{parts}]", ".", rng.choice(PARTS[:9]), "[^a]"])
    flags = rng.choice([0, re.ASCII, re.DOTALL])
    ((op, arg),) = _parser.parse(pattern, flags)
    found = _runs(op, _frozen(arg), flags)
    assert _joined(found) == _joined(_matched(op, _frozen(arg), flags))
