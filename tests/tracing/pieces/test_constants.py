"""What code uses from outside of it: sets, decimals, dates, patterns, functions, objects."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import pytest
from control_flow import agree

import sgc
from sgc.runtime.executor.code.run import run_code
from sgc.tracing.pieces.text.constants import NotData, holds_made, is_fixed, literal
from sgc.tracing.pieces.text.module_text import ModuleText

REPLIES = ("the cat 12.5", "a 7", "", "cat", "3 the 4.25")
STOPWORDS = frozenset({"the", "a"})
CENT = Decimal("0.01")
START = date(2024, 2, 28)
PATTERNS = [("NUMBER", re.compile(r"\d+(?:\.\d+)?")), ("WORD", re.compile("[a-z]+", re.I))]


@dataclass(frozen=True)
class Rule:
    name: str
    least: int

    def holds(self, text: str) -> bool:
        return len(text.split()) >= self.least


def shouted(text: str) -> str:
    return text.upper()


RULES = (Rule("short", 1), Rule("long", 3))
CHANGES = {"up": shouted, "first": lambda text: text[:1], "n": len}
HALF = Fraction(1, 2)


def words(text: str) -> list[str]:
    return sorted(set(re.findall("[a-z]+", text)) - STOPWORDS)


def found(text: str) -> list[str]:
    return [f"{kind}:{pattern.sub('_', text)}" for kind, pattern in PATTERNS]


def summed(text: str) -> str:
    return str(sum((Decimal(n).quantize(CENT, ROUND_HALF_UP) for n in text.split()), Decimal(0)))


@sgc.function
def program(s, q: str):
    s += q + sgc.gen("a", max_tokens=4)
    text = s["a"]
    s += " ".join(words(text)) + "; ".join(found(text))
    rules = [rule.name for rule in RULES if rule.holds(text)]
    changed = sorted(str(change(text)) for change in CHANGES.values())
    day = str(START + timedelta(days=len(text.split()))) + str(HALF * len(text.split()))
    return rules, changed, day, summed(" ".join(re.findall(r"\d+(?:\.\d+)?", text)))


def test_code_has_what_it_uses_from_outside() -> None:
    agree(program, REPLIES, n=3, q="x")


@pytest.mark.parametrize(
    "value",
    [
        frozenset({1, 2}), frozenset(), Decimal("1.50"), HALF, START, timedelta(1, 2, 3),
        (re.compile("a", re.I),), (1, (2.5, None)), deque([1], 3), Counter(a=2), RULES,
        defaultdict(list, {"a": [1]}), {"k": [{"x"}]},
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_constant_is_written_so_that_it_is_the_same_again(value: Any) -> None:
    module = ModuleText(lambda names: names)
    module.bind("constant", value)
    (entry,) = ast.parse("def piece():\n    return constant").body
    assert isinstance(entry, ast.FunctionDef)
    again = run_code(module.text(entry), [])
    assert repr(again) == repr(value)


def test_what_is_no_constant() -> None:
    around: list[Any] = []
    around.append(around)
    for value in (around, object(), defaultdict(lambda: object()), float("nan"), shouted):
        with pytest.raises(NotData):
            literal(value)


def test_whether_a_constant_can_be_changed() -> None:
    assert all(map(is_fixed, (RULES, STOPWORDS, CENT, shouted, (1, "a"))))
    assert not any(map(is_fixed, (PATTERNS, CHANGES, [1], (1, []), deque())))
    assert holds_made(CHANGES)
    assert holds_made(RULES)
    assert not holds_made(PATTERNS)
