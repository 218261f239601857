"""Upper bounds of cost: requests, tokens, money."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

MAX_MAPPED = 64  # maps whose costs are kept separate: nested maps multiply


class Mapped(NamedTuple):
    """A map over lists of unknown length, the outermost list first. places: its position in its
    program, after the positions of the maps around it in theirs.
    """

    places: tuple[int, ...]
    program: str
    lists: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """An upper bound. money: US dollars, 0 if nothing is billed. why: what makes a sum unbounded.
    mapped: additional cost per item of lists of unknown length, if these costs are kept separate.
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
        return self._merged(other, operator.add, Cost.plus)

    def or_else(self, other: Cost) -> Cost:
        """The larger cost of two paths, for each sum separately."""
        return self._merged(other, max, Cost.or_else)

    def times(self, n: float) -> Cost:
        mapped = {key: each.times(n) for key, each in self.mapped.items()}
        sums = (product(each, n) for each in self._sums)
        return _cost(sums, self.why, mapped)

    @property
    def _sums(self) -> tuple[float, float, float, float]:
        return self.requests, self.prompt_tokens, self.completion_tokens, self.money

    def _merged(
        self,
        other: Cost,
        merge: Callable[[float, float], float],
        merge_mapped: Callable[[Cost, Cost], Cost],
    ) -> Cost:
        sums = map(merge, self._sums, other._sums)
        mapped = self._both(other, merge_mapped)
        return _cost(sums, self.why or other.why)._with_mapped(mapped)

    def of_map(self, place: int) -> Cost:
        """The same cost, as part of the map at a position."""
        kept = {key._replace(places=(place, *key.places)): c for key, c in self.mapped.items()}
        return replace(self, mapped=kept)

    def for_each(self, place: int, program: str, items: str) -> Cost:
        """The cost of a map over a list of unknown length, where `self` is the cost of one item."""
        kept = {
            Mapped((place, *key.places), key.program, (items, *key.lists)): each
            for key, each in self.mapped.items()
        }
        own = {Mapped((place,), program, (items,)): replace(self, mapped={})}
        return FREE._with_mapped({**own, **kept})

    def _both(self, other: Cost, merge: Callable[[Cost, Cost], Cost]) -> Mapping[Mapped, Cost]:
        if not self.mapped or not other.mapped:  # an absent cost is zero
            return self.mapped or other.mapped
        keys = {**self.mapped, **other.mapped}
        return {k: merge(self.mapped.get(k, FREE), other.mapped.get(k, FREE)) for k in keys}

    def _with_mapped(self, mapped: Mapping[Mapped, Cost]) -> Cost:
        if len(mapped) > MAX_MAPPED or _TOO_MANY in mapped:
            whole = Cost.unbounded("it maps over more lists than are told apart")
            return replace(whole, mapped={_TOO_MANY: FREE})
        return replace(self, mapped=mapped) if mapped else self


def _cost(sums: Iterable[float], why: str, mapped: Mapping[Mapped, Cost] | None = None) -> Cost:
    requests, prompt_tokens, completion_tokens, money = sums
    return Cost(requests, prompt_tokens, completion_tokens, money, why, mapped or {})


FREE = Cost()
_TOO_MANY = Mapped((), "", ())  # stands for all of them


def product(a: float, b: float) -> float:
    """The product, where 0 times infinity is 0."""
    return a * b if a and b else 0.0
