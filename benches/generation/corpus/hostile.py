"""Seeded hostile regexes, schemas and grammars, which a service must compile or refuse safely.

Items depend only on the count and the seed, and are not meant to be sensible. Tests and benches of
the limits on compiling and on masks call it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generation.corpus.hostile_drawing import draw
from generation.corpus.hostile_grammars import GRAMMARS
from generation.corpus.hostile_patterns import PATTERNS
from generation.corpus.hostile_schemas import SCHEMAS


def hostile_patterns(n: int, seed: int) -> Iterator[str]:
    """Yields n hostile regexes."""
    return draw(PATTERNS, n, seed)


def hostile_schemas(n: int, seed: int) -> Iterator[Any]:
    """Yields n hostile JSON schemas; some are not valid schemas."""
    return draw(SCHEMAS, n, seed)


def hostile_grammars(n: int, seed: int) -> Iterator[str]:
    """Yields n hostile grammars, in Lark's notation or in GBNF."""
    return draw(GRAMMARS, n, seed)
