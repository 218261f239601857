"""The tree of the prompts that runs are expected to send, and the best cache marks in it.

A place is a prefix of prompts; its children continue it. If a place is marked, the first request
through it pays for writing the tokens between it and the nearest marked ancestor, and all later
requests read them. So marks are worth the sum of `gain(n) * tokens between`, and the best marks are
found by dynamic programming from the leaves, over the marked ancestor of each place and the number
of marks left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from sgc.passes.hints.caching.rules import CacheRules

# With more states, all places that pay are marked, and a request sends the last marks.
MAX_STATES = 100_000
# Sizes are guesses: a mark on too short a prefix costs nothing, but a missing mark loses the gain.
# So a prefix that may be twice as long as guessed counts as long enough.
SLACK = 2.0
ROOT = 0


@dataclass(slots=True)
class Place:
    """A prefix of prompts. tokens: the size of the whole prefix; is_equal: whether the prefix is
    the same in all rows.

    states: names of the stream states that can be marked here. asked: the number of requests with
    exactly this prompt, by the other fields that must be equal to share a cache entry.
    """

    parent: int
    tokens: float
    is_equal: bool
    states: list[str] = field(default_factory=list)
    asked: Counter[Hashable] = field(default_factory=Counter)
    children: dict[Hashable, int] = field(default_factory=dict)


class PromptTree:
    """The places by number; a parent comes before its children."""

    def __init__(self) -> None:
        self.places = [Place(-1, 0.0, True)]

    def child_after(self, place: int, key: Hashable, tokens: float, is_equal: bool = True) -> int:
        """The place after a piece. key: equal for pieces whose text is equal."""
        parent = self.places[place]
        found = parent.children.get(key)
        if found is None:
            found = parent.children[key] = len(self.places)
            self.places.append(Place(place, parent.tokens + tokens, parent.is_equal and is_equal))
        return found


def gains(tree: PromptTree, rules: CacheRules, rows: int) -> list[float]:
    """For each place, the saving per token over all rows if it is marked; 0 if a mark is useless.

    Of places on one path with equal worth, only the lowest counts, because it caches more.
    """
    through = [Counter(place.asked) for place in tree.places]
    for number in range(len(tree.places) - 1, ROOT, -1):
        through[tree.places[number].parent].update(through[number])
    worth = [_gain(*pair, rules, rows) for pair in zip(tree.places, through, strict=True)]
    found = [0.0] * len(worth)
    is_kept_below = [False] * len(worth)
    for number in range(len(worth) - 1, ROOT, -1):
        place = tree.places[number]
        fits = bool(place.states) and place.tokens * SLACK >= max(rules.min_tokens, 1)
        if fits and not is_kept_below[number]:
            found[number] = worth[number]
        if (fits or is_kept_below[number]) and worth[number] == worth[place.parent]:
            is_kept_below[place.parent] = True
    return found


def _gain(place: Place, through: Counter[Hashable], rules: CacheRules, rows: int) -> float:
    each = rows if place.is_equal else 1
    gain = sum(rules.gain(n * each) for n in through.values())
    return max(gain, 0.0) * (1 if place.is_equal else rows)


def best_marks(tree: PromptTree, rules: CacheRules, rows: int = 1) -> frozenset[int]:
    """The places whose marking saves most.

    Between two requests of a path there is one mark fewer than a request may have, since one mark
    is at the end of the request before; before the first request, all marks are free.
    """
    worth = gains(tree, rules, rows)
    paying = frozenset(number for number, gain in enumerate(worth) if gain > 0)
    if rules.breakpoints is None or not paying:
        return paying
    search = _Search(tree, worth, rules.breakpoints)
    return search.best() if search.n_states <= MAX_STATES else paying


class _Search:
    def __init__(self, tree: PromptTree, worth: list[float], most: int) -> None:
        self._places, self._worth, self._most = tree.places, worth, most
        n_above = [1]  # the number of paying ancestors of each place, and the root
        for place in self._places[1:]:
            n_above.append(n_above[place.parent] + (worth[place.parent] > 0))
        self.n_states = (most + 1) * sum(n_above)
        self._above: list[tuple[int, ...]] = [(ROOT,)]

    def best(self) -> frozenset[int]:
        for place in self._places[1:]:
            above, pays = self._above[place.parent], self._worth[place.parent] > 0
            self._above.append((*above, place.parent) if pays else above)
        saved: list[dict[tuple[int, int], float]] = [{} for _ in self._places]
        for number in range(len(self._places) - 1, -1, -1):
            for upper in self._above[number]:
                for left in range(self._most + 1):
                    saved[number][upper, left] = max(self._options(number, upper, left, saved))
        return self._chosen(saved)

    def _options(
        self, number: int, upper: int, left: int, saved: list[dict[tuple[int, int], float]]
    ) -> tuple[float, float]:
        """The savings at and below a place, without a mark at the place and with one."""
        place = self._places[number]
        children = place.children.values()
        plain = sum(saved[child][upper, self._left(place, left)] for child in children)
        if not self._worth[number] or not left:
            return plain, float("-inf")
        own = self._worth[number] * (place.tokens - self._places[upper].tokens)
        return plain, own + sum(
            saved[child][number, self._left(place, left - 1)] for child in children
        )

    def _left(self, place: Place, left: int) -> int:
        """The marks left below a place: after a request the count starts again."""
        return self._most - 1 if place.asked else left

    def _chosen(self, saved: list[dict[tuple[int, int], float]]) -> frozenset[int]:
        chosen = set()
        todo = [(ROOT, ROOT, self._most)]
        while todo:
            number, upper, left = todo.pop()
            plain, marked = self._options(number, upper, left, saved)
            if marked > plain:
                chosen.add(number)
                upper, left = number, left - 1
            place = self._places[number]
            below = self._left(place, left)
            todo += [(child, upper, below) for child in place.children.values()]
        return frozenset(chosen)
