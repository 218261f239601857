"""What something costs at most: requests, tokens, money."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

MAX_MAPPED = 64  # maps whose costs are kept apart: maps in maps multiply


class Mapped(NamedTuple):
    """A map over lists whose lengths are not known, the outermost list first. places: where it
    stands in its program, after where the maps around it stand in theirs.
    """

    places: tuple[int, ...]
    program: str
    lists: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """At most. money: US dollars, 0 where nobody is billed. why: what makes a sum unbounded.
    mapped: what more it costs for each item of lists whose lengths are not known, where these
    costs are kept apart.
    """

    requests: float = 0.0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    money: float = 0.0
    why: str = ""
    mapped: Mapping[Mapped, Cost] = field(default_factory=dict)

    @staticmethod
    def unbounded(why: str) -> Cost:
        return Cost(*(math.inf,) * 4, why)

    def plus(self, other: Cost) -> Cost:
        return Cost(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.money + other.money,
            self.why or other.why,
        )._with_mapped(self._both(other, Cost.plus))

    def or_else(self, other: Cost) -> Cost:
        """The dearer of two paths, each sum by itself."""
        return Cost(
            max(self.requests, other.requests),
            max(self.prompt_tokens, other.prompt_tokens),
            max(self.completion_tokens, other.completion_tokens),
            max(self.money, other.money),
            self.why or other.why,
        )._with_mapped(self._both(other, Cost.or_else))

    def times(self, n: float) -> Cost:
        return Cost(
            product(self.requests, n),
            product(self.prompt_tokens, n),
            product(self.completion_tokens, n),
            product(self.money, n),
            self.why,
            {key: each.times(n) for key, each in self.mapped.items()},
        )

    def of_map(self, place: int) -> Cost:
        """The same, as part of what the map at a place costs."""
        kept = {key._replace(places=(place, *key.places)): c for key, c in self.mapped.items()}
        return replace(self, mapped=kept)

    def for_each(self, place: int, program: str, items: str) -> Cost:
        """The cost of a map over a list of unknown length, of which this is one item's."""
        kept = {
            Mapped((place, *key.places), key.program, (items, *key.lists)): each
            for key, each in self.mapped.items()
        }
        own = {Mapped((place,), program, (items,)): replace(self, mapped={})}
        return FREE._with_mapped({**own, **kept})

    def _both(self, other: Cost, merge: Callable[[Cost, Cost], Cost]) -> Mapping[Mapped, Cost]:
        if not self.mapped or not other.mapped:  # nothing added, and nothing is the least
            return self.mapped or other.mapped
        keys = {**self.mapped, **other.mapped}
        return {k: merge(self.mapped.get(k, FREE), other.mapped.get(k, FREE)) for k in keys}

    def _with_mapped(self, mapped: Mapping[Mapped, Cost]) -> Cost:
        if len(mapped) > MAX_MAPPED or _TOO_MANY in mapped:
            whole = Cost.unbounded("it maps over more lists than are told apart")
            return replace(whole, mapped={_TOO_MANY: FREE})
        return replace(self, mapped=mapped) if mapped else self


FREE = Cost()
_TOO_MANY = Mapped((), "", ())  # in place of each of them


def product(a: float, b: float) -> float:
    """Nothing, any number of times, is nothing."""
    return a * b if a and b else 0.0
