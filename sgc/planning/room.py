"""How many rows of a planned batch may be under way: as many as fit the engine's pool at once.

A row that is under way keeps what it has computed only while there is room: between two of its
requests nothing holds it. So rows start while what all of them need fits most of the pool; the
rest is for what rows that are over have left, which goes first. How many tokens a row takes is
estimated from its text, and then from what rows that are over have taken.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sgc.runtime.executor.run.record import RunResult

if TYPE_CHECKING:
    from sgc.planning.plan import RowSize  # makes plans; a batch without one needs none

# Until a row is over: few characters for a token, so that too few rows start, not too many.
FIRST_CHARS_PER_TOKEN = 2.0
PART_OF_POOL = 0.75
_SPARE = 1024  # rows that are over, in the heap of paths


Sizes = Sequence["RowSize"] | Mapping[int, "RowSize"]


class Room:
    """Rows under way; lives on one loop. sizes: by row, of those that may enter; None without a
    plan. pool_tokens: None where the backend tells of no pool."""

    def __init__(self, max_rows: int, sizes: Sizes | None, pool_tokens: int | None) -> None:
        self._max_rows = max_rows
        self._sizes = sizes
        self._limit = PART_OF_POOL * pool_tokens if pool_tokens and sizes is not None else None
        self._inside: set[int] = set()
        self._paths: list[tuple[int, int]] = []  # a heap; who has left is found at its top
        self._own_chars = self._generated = 0  # of the rows inside
        self._n_chars = self._n_tokens = 0  # of prompts of rows that are over
        self._n_may, self._n_generated = 0, 0  # tokens they could generate, and did
        self._changed = asyncio.Event()

    async def enter(self, row: int) -> None:
        """Waits until there is room for a row; one row always has it."""
        while self._inside and not self._has_room(row):
            self._changed.clear()
            await self._changed.wait()
        self._inside.add(row)
        self._count(row, 1)
        if self._limit is not None:
            assert self._sizes is not None
            heapq.heappush(self._paths, (-self._sizes[row].shared_chars, row))
            if len(self._paths) > 2 * len(self._inside) + _SPARE:
                self._paths = [each for each in self._paths if each[1] in self._inside]
                heapq.heapify(self._paths)

    def leave(self, row: int) -> None:
        """A row is over; what a dict says of its size is removed."""
        self._inside.remove(row)
        self._count(row, -1)
        if isinstance(self._sizes, dict):
            self._sizes.pop(row, None)
        self._changed.set()

    def learn(self, row: int, result: RunResult) -> None:
        """What a row that is over has taken. Of prompts whose text is a backend's own matter
        (media), the characters are too few: the estimate is then too careful."""
        if self._limit is None:
            return
        for request in result.requests:
            if not request.usage.prompt_tokens:
                continue  # the backend does not count
            self._n_chars += sum(len(segment.text) for segment in request.prompt)
            self._n_tokens += request.usage.prompt_tokens
            self._n_generated += request.usage.completion_tokens
        assert self._sizes is not None
        self._n_may += self._sizes[row].generated_tokens

    def _has_room(self, row: int) -> bool:
        if len(self._inside) >= self._max_rows:
            return False
        if self._limit is None:
            return True
        assert self._sizes is not None
        size = self._sizes[row]
        n_chars = max(size.shared_chars, self._longest_path()) + self._own_chars + size.own_chars
        n_generated = self._generated + size.generated_tokens
        return self._tokens(n_chars) + self._share_generated * n_generated <= self._limit

    def _longest_path(self) -> int:
        """Of the rows inside: what they share with rows before them, which may be over."""
        while self._paths and self._paths[0][1] not in self._inside:
            heapq.heappop(self._paths)
        return -self._paths[0][0] if self._paths else 0

    def _tokens(self, n_chars: int) -> float:
        if self._n_tokens:
            return n_chars * self._n_tokens / max(1, self._n_chars)
        return n_chars / FIRST_CHARS_PER_TOKEN

    @property
    def _share_generated(self) -> float:
        """Of the tokens that rows may generate, those that they do; more than one where the way
        that is known leaves generations out."""
        return self._n_generated / self._n_may if self._n_may else 1.0

    def _count(self, row: int, sign: int) -> None:
        if self._sizes is not None:
            self._own_chars += sign * self._sizes[row].own_chars
            self._generated += sign * self._sizes[row].generated_tokens
