"""How many rows of a planned batch may be under way: as many as fit the engine's pool at once.

A row that is under way keeps what it has computed only while there is room: between two of its
requests nothing holds it. So rows start while all of them together fit most of the pool; the rest
holds what finished rows have left in the cache, which is evicted first. The number of tokens of a
row is estimated from its text, and later from the tokens of finished rows.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sgc.runtime.executor.run.record import RunResult

if TYPE_CHECKING:
    from sgc.planning.plan import RowSize  # makes plans; a batch without one needs none

# Until a row has finished: few characters per token, so that too few rows start, not too many.
FIRST_CHARS_PER_TOKEN = 2.0
PART_OF_POOL = 0.75
_SPARE = 1024  # finished rows that are still in the heap of paths


Sizes = Sequence["RowSize"] | Mapping[int, "RowSize"]


class Room:
    """Rows under way; lives on one loop. sizes: of the rows that may enter; None without a plan.
    pool_tokens: None if the backend reports no pool."""

    def __init__(self, max_rows: int, sizes: Sizes | None, pool_tokens: int | None) -> None:
        self._max_rows = max_rows
        self._sizes = sizes
        self._limit = PART_OF_POOL * pool_tokens if pool_tokens and sizes is not None else None
        self._inside: set[int] = set()
        self._paths: list[tuple[int, int]] = []  # a heap; rows that left go at its top
        self._own_chars = self._generated = 0  # of the rows inside
        self._n_chars = self._n_tokens = 0  # of prompts of finished rows
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
        """A row has finished; removes its size if sizes are in a dict."""
        self._inside.remove(row)
        self._count(row, -1)
        if isinstance(self._sizes, dict):
            self._sizes.pop(row, None)
        self._changed.set()

    def learn(self, row: int, result: RunResult) -> None:
        """Learns from a finished row's tokens. Prompts with media have fewer characters than their
        tokens suggest: the estimate is then too cautious."""
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
        """The longest prefix that a row inside shares with the one before, maybe a finished one."""
        while self._paths and self._paths[0][1] not in self._inside:
            heapq.heappop(self._paths)
        return -self._paths[0][0] if self._paths else 0

    def _tokens(self, n_chars: int) -> float:
        if self._n_tokens:
            return n_chars * self._n_tokens / max(1, self._n_chars)
        return n_chars / FIRST_CHARS_PER_TOKEN

    @property
    def _share_generated(self) -> float:
        """The share of the tokens rows may generate that they do generate; above 1 if the known
        path leaves generations out."""
        return self._n_generated / self._n_may if self._n_may else 1.0

    def _count(self, row: int, sign: int) -> None:
        if self._sizes is not None:
            self._own_chars += sign * self._sizes[row].own_chars
            self._generated += sign * self._sizes[row].generated_tokens
