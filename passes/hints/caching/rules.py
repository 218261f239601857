"""What a placement of cache marks is told: a provider's rules as numbers, and what runs are like.

Filled from the table of models and from the arguments; passes know no provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CacheRules:
    """A prompt cache that can be told what to keep. Prices are multiples of plain input.

    write: of a token that is kept; read: of one that was. min_tokens: of the shortest prefix kept.
    breakpoints: marks that a request writes; None where marks only tell the provider's own cache
    what belongs together. is_implicit: what is not planned the provider marks by itself.
    n_in_one: several texts of a prompt are one request.
    """

    write: float
    read: float
    min_tokens: int = 0
    breakpoints: int | None = None
    is_implicit: bool = False
    n_in_one: bool = False
    ttl: str = ""
    chars_per_token: float = 4.0

    def gain(self, n_requests: int) -> float:
        """What keeping a token saves that so many requests begin with; the first one writes it."""
        return (n_requests - 1) * (1 - self.read) - (self.write - 1)


@dataclass(frozen=True, slots=True)
class Expected:
    """Runs to come. rows: how many begin alike; equal: arguments that are the same in all rows.

    tokens: of arguments, of a list's items; lengths: of lists. What is not told is guessed.
    """

    rows: int = 1
    equal: frozenset[str] = frozenset()
    tokens: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
