"""The input for placing cache marks: a provider's rules as numbers, and the expected runs.

They are made from the table of models and the program's arguments; passes know no provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CacheRules:
    """The rules of a prompt cache with cache marks. Prices are multiples of the input price.

    write: the price of a token written to the cache; read: the price of a token read from it.
    min_tokens: the length of the shortest cached prefix. breakpoints: the most marks that a request
    writes; None if marks only tell the provider's own cache which requests belong together.
    is_implicit: whether the provider itself marks unplanned prompts. n_in_one: whether several
    generations of one prompt are one request.
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
        """The saving by caching a token that `n_requests` requests have; the first writes it."""
        return (n_requests - 1) * (1 - self.read) - (self.write - 1)


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected runs. rows: the number of runs with the same beginnings; equal: arguments that
    are the same in all rows.

    tokens: the sizes of arguments, or of a list's items; lengths: the lengths of lists. Missing
    numbers are guessed.
    """

    rows: int = 1
    equal: frozenset[str] = frozenset()
    tokens: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
