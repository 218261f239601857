"""Reads a batch's results as they come over the wire, line by line, in bounded memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any

from sgc.errors import BackendError
from sgc.runtime.executor.backends.providers.batches.contract import Json, Result
from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply

MAX_LINE_BYTES = 64 * 1024 * 1024


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines in a stream of bytes; empty ones are left out. Raises MalformedReply for a line
    that does not end."""
    held = b""
    async for chunk in chunks:
        *whole, held = (held + chunk).split(b"\n")
        for line in whole:
            if line.strip():
                yield line
        if len(held) > MAX_LINE_BYTES:
            raise MalformedReply(f"a line of the results has over {MAX_LINE_BYTES} bytes")
    if held.strip():
        yield held


def id_of(line: Any) -> str:
    """The request that a line of the results is of; raises MalformedReply."""
    id = line.get("custom_id") if isinstance(line, dict) else None
    if not isinstance(id, str):
        raise MalformedReply("a line of the results has no custom_id")
    return id


class Reader:
    """The results in the lines of one batch, each request once.

    n_damaged: lines that are no results; n_twice: repeated results; n_strange: results that were
    not asked for, with the first of them.
    """

    def __init__(self, parse: Callable[[Json], Result], ids: Collection[str]) -> None:
        self._parse = parse
        self._ids = ids
        self.begin()

    def begin(self) -> None:
        """Begins to read from the first line."""
        self.seen: set[str] = set()
        self.n_damaged = self.n_twice = self.n_strange = 0
        self.stranger = ""

    def read(self, line: bytes) -> Result | None:
        """The line's result, if it is new and was asked for."""
        try:
            found = json.loads(line)
            result = self._parse(found)
        except (ValueError, RecursionError, BackendError):
            self.n_damaged += 1
            return None
        if result.id not in self._ids:
            self.n_strange += 1
            self.stranger = self.stranger or result.id
            return None
        if result.id in self.seen:
            self.n_twice += 1
            return None
        self.seen.add(result.id)
        return result

    @property
    def notes(self) -> list[str]:
        """Notes on irregular lines."""
        found = []
        if self.n_damaged:
            found.append(f"{self.n_damaged} lines of its results are damaged")
        if self.n_twice:
            found.append(f"{self.n_twice} results came twice; the first ones count")
        if self.n_strange:
            shown = self.stranger[:64]
            found.append(f"{self.n_strange} results were not asked for, such as {shown!r}")
        return found
