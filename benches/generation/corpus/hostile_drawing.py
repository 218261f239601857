"""Helpers that draw hostile items: sizes, words, and entries of the corpus."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

CORPUS = Path(__file__).parent
Item = TypeVar("Item")
Rng = random.Random
UNICODE_CLASSES = (r"\p{L}", r"\p{Lu}", r"\p{Han}", r"\p{Greek}", r"\P{Cyrillic}", r"\w", r"\W")
KEYWORDS = ("type", "enum", "properties", "items", "required", "minimum", "pattern", "$ref")
WRONG_VALUES: tuple[Any, ...] = (None, True, -1, 1e308, "x", "", [], [None], {}, {"": 0}, 2**70)


def draw(kinds: tuple[Callable[[Rng], Item], ...], n: int, seed: int) -> Iterator[Item]:
    rng = Rng(seed)
    for index in range(n):
        yield kinds[index % len(kinds)](rng)


def size(rng: Rng, largest: int) -> int:
    """Draws a size from 1 to `largest`; all magnitudes are equally likely."""
    return max(1, int(largest ** rng.random()))


def word(rng: Rng, length: int = 6) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=length))


def corpus_of(name: str, key: str) -> list[Any]:
    return [entry[key] for entry in json.loads((CORPUS / name).read_text(encoding="utf-8"))]
