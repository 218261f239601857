"""Seeded hostile regexes, schemas and grammars: what a service must survive, compiled or refused.

The same count and seed give the same items. Nothing here is meant to be sensible. Called by the
tests and benches that put limits on compiling and on masks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generation.corpus.hostile_drawing import draw
from generation.corpus.hostile_grammars import GRAMMARS
from generation.corpus.hostile_patterns import PATTERNS
from generation.corpus.hostile_schemas import SCHEMAS


def hostile_patterns(n: int, seed: int) -> Iterator[str]:
    """Give n hostile regexes."""
    return draw(PATTERNS, n, seed)


def hostile_schemas(n: int, seed: int) -> Iterator[Any]:
    """Give n hostile JSON schemas; some are no schemas at all."""
    return draw(SCHEMAS, n, seed)


def hostile_grammars(n: int, seed: int) -> Iterator[str]:
    """Give n hostile grammars, in Lark's notation or in GBNF."""
    return draw(GRAMMARS, n, seed)
