"""The input for placing cache marks: a provider's rules as numbers, and the expected runs.

They are made from the table of models and the arguments; passes know no provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CacheRules:
    """The rules of a prompt cache with cache marks. Prices are multiples of the input price.

    write: price of a token written to the cache; read: of one read from it. min_tokens: of the
    shortest cached prefix. breakpoints: the most marks that a request writes; None if marks only
    tell the provider's own cache which requests belong together. is_implicit: the provider marks
    unplanned prompts itself. n_in_one: several generations of one prompt are one request.
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
        """What caching a token saves if `n_requests` requests have it; the first one writes it."""
        return (n_requests - 1) * (1 - self.read) - (self.write - 1)


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected runs. rows: how many have the same beginnings; equal: arguments that are the
    same in all rows.

    tokens: of arguments, or of a list's items; lengths: of lists. Missing numbers are guessed.
    """

    rows: int = 1
    equal: frozenset[str] = frozenset()
    tokens: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
