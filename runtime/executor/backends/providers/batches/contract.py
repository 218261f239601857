"""What a provider's batch API is to us: data, and the calls that each provider implements."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from sgc.errors import BackendError

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Key:
    """By which a batch is found again at its provider. job: of the job's journal; number: of the
    batch in it; since: when it was begun, in seconds since 1970; n_requests: in it."""

    job: str
    number: int
    since: float
    n_requests: int

    @property
    def name(self) -> str:
        return f"sgc-{self.job}-{self.number}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A request of a batch. line: it and its body, as JSON."""

    id: str
    line: bytes

    @staticmethod
    def of(id: str, asked: Json) -> Entry:
        return Entry(id, json.dumps(asked, separators=(",", ":")).encode("ascii"))


@dataclass(frozen=True, slots=True)
class Status:
    """word: the provider's own; n_done: requests that have ended, where that is told.

    rest: what has become of requests without a result. refused: why the provider took none of the
    batch; lines: why it took none because of some lines, by their numbers from 1; is_full: it
    has too much queued, and would take it later. results: where they are.
    """

    word: str
    is_over: bool
    n_done: int = 0
    rest: End | None = None
    refused: str = ""
    lines: Mapping[int, str] = field(default_factory=dict)
    is_full: bool = False
    results: tuple[str, ...] = ()


class End(Enum):
    """How a request of a batch ended."""

    REPLIED = "replied"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Result:
    """What a batch says of one request. body: the reply's; error: of one that failed."""

    id: str
    end: End
    body: Any = None
    error: BackendError | None = None


class BatchApi(Protocol):
    """A provider's batches. All calls raise typed errors.

    max_requests, max_bytes: of one batch. has_names: whether `find` finds a batch by its key alone.
    """

    max_requests: int
    max_bytes: int
    has_names: bool

    def entry(self, id: str, body: Json) -> Entry: ...

    async def upload(self, key: Key, entries: Sequence[Entry]) -> str:
        """Uploads what `start` names; "" where it sends the requests itself."""
        ...

    async def start(self, key: Key, file: str, entries: Sequence[Entry]) -> str:
        """Starts a batch; returns its id."""
        ...

    async def find(self, key: Key, ids: Collection[str], known: Collection[str]) -> list[str]:
        """Batches that `start` has made with this key, though nobody heard of it; likeliest first.

        ids: of the batch's requests; known: batches that are another's.
        """
        ...

    async def discard(self, key: Key, file: str) -> None:
        """Removes what was uploaded for a batch that is not to start any more."""
        ...

    async def look(self, batch: str) -> Status: ...

    def lines(self, batch: str, status: Status) -> AsyncIterator[bytes]:
        """The lines of a batch's results, in any order."""
        ...

    def result(self, line: Json) -> Result:
        """What a line says; raises MalformedReply."""
        ...

    async def cancel(self, batch: str) -> None: ...
