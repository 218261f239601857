"""What tree and pool must hold, said as plainly as can be: a dictionary from prefixes to pages.

A prefix is a `Place`: the one before it and a token. No runs of tokens, no splits, no heap.
`cache_fuzz.py` and the tests of tree and pool compare with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

FIRST_TO_GO = 0  # a stamp before all others


class Place:
    """One prefix: what it costs, who uses it, and when it was last used."""

    __slots__ = ("locks", "n_after", "page", "parent", "stamp", "token")

    def __init__(self, parent: Place | None, token: int, page: int) -> None:
        self.parent, self.token, self.page = parent, token, page
        self.locks = self.stamp = self.n_after = 0


class NaiveCache:
    """keeps_order: whether eviction must take the least recently used end first."""

    def __init__(self, n_pages: int, n_spaces: int = 1, keeps_order: bool = True) -> None:
        self.n_pages = n_pages
        self.roots = [Place(None, -1, -1) for _ in range(n_spaces)]
        self.places: dict[tuple[Place, int], Place] = {}
        self.of_page: dict[int, Place] = {}
        self.ends: dict[Place, None] = {}  # places after which nothing comes
        self.reserved: set[int] = set()
        self.n_locked = 0
        self._keeps_order = keeps_order
        self._clock = 0

    @property
    def n_evictable(self) -> int:
        return len(self.of_page) - self.n_locked

    @property
    def n_free(self) -> int:
        return self.n_pages - len(self.of_page) - len(self.reserved)

    def known(self, space: int, tokens: Iterable[int]) -> list[Place]:
        """The places of the longest known prefix."""
        path, place = [], self.roots[space]
        for token in tokens:
            found = self.places.get((place, token))
            if found is None:
                break
            path.append(found)
            place = found
        return path

    def reserve(self, pages: Sequence[int]) -> None:
        assert len(set(pages)) == len(pages)
        for page in pages:
            assert page not in self.of_page, "a page of the tree was given out"
            assert page not in self.reserved, "a page was given out twice"
        self.reserved.update(pages)

    def release(self, pages: Iterable[int]) -> None:
        self.reserved.difference_update(pages)

    def lock(self, path: Iterable[Place], change: int) -> None:
        """change: 1 or -1"""
        for place in path:
            before = place.locks > 0
            place.locks += change
            self.n_locked += (place.locks > 0) - before

    def touch(self, path: Iterable[Place]) -> None:
        self._clock += 1
        for place in path:
            place.stamp = self._clock

    def insert(self, below: Place, tokens: list[int], given: list[int]) -> list[Place]:
        """The run's places; of the given pages, those of known tokens are free again."""
        path, place = [], below
        for token, page in zip(tokens, given, strict=True):
            found = self.places.get((place, token))
            found = self._add(place, token, page) if found is None else found
            path.append(found)
            place = found
        self.release(given)
        return path

    def evicted(self, pages: Sequence[int]) -> None:
        """Follows an eviction, which must have taken ends that nobody uses, oldest first."""
        left = set(pages)
        assert len(left) == len(pages), "a page was evicted twice"
        while left:
            place = self._next_to_go(left)
            left.remove(place.page)
            self._remove(place)

    def demote(self, path: list[Place], n_kept: int) -> None:
        """From the end on, what is after `n_kept` and unused goes first."""
        for place in reversed(path[n_kept:]):
            after = [other for other in self.places.values() if other.parent is place]
            if place.locks or any(other.stamp != FIRST_TO_GO for other in after):
                return
            place.stamp = FIRST_TO_GO

    def _add(self, parent: Place, token: int, page: int) -> Place:
        place = Place(parent, token, page)
        self.places[parent, token] = self.of_page[page] = place
        self.ends[place] = None
        self.ends.pop(parent, None)
        parent.n_after += 1
        return place

    def _next_to_go(self, pages: set[int]) -> Place:
        """One of them that may go now."""
        ends = [place for place in self.ends if place.locks == 0]
        first = min((place.stamp for place in ends), default=0)
        for place in ends:
            if place.page in pages and (place.stamp == first or not self._keeps_order):
                return place
        raise AssertionError("evicted what is in use, not an end, or not the least recently used")

    def _remove(self, place: Place) -> None:
        parent = place.parent
        assert parent is not None
        del self.places[parent, place.token], self.of_page[place.page], self.ends[place]
        parent.n_after -= 1
        if parent.n_after == 0 and parent.parent is not None:
            self.ends[parent] = None
