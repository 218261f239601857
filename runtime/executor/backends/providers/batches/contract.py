"""The interface of providers' batch APIs: data, and the calls that each provider implements."""

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
    """Identifies a batch at its provider. job: of the job's journal; number: of the batch in the
    journal; since: when the batch was begun, in seconds since 1970; n_requests: in the batch."""

    job: str
    number: int
    since: float
    n_requests: int

    @property
    def name(self) -> str:
        return f"sgc-{self.job}-{self.number}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A request of a batch. line: the request with its body, as JSON."""

    id: str
    line: bytes

    @staticmethod
    def of(id: str, asked: Json) -> Entry:
        return Entry(id, json.dumps(asked, separators=(",", ":")).encode("ascii"))


@dataclass(frozen=True, slots=True)
class Status:
    """word: the provider's own; n_done: requests that have ended, where that is told.

    rest: how requests without a result ended. refused: why the provider took none of the batch;
    lines: the reasons for single lines, by their numbers from 1; is_full: the provider's queue is
    full, and it would take the batch later. results: where the results are.
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
    """A batch's result for one request. body: of the reply; error: of a request that failed."""

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
        """Uploads what `start` names; returns its id, "" if `start` sends the requests itself."""
        ...

    async def start(self, key: Key, file: str, entries: Sequence[Entry]) -> str:
        """Starts a batch; returns its id."""
        ...

    async def find(self, key: Key, ids: Collection[str], known: Collection[str]) -> list[str]:
        """Batches that `start` may have made with this key without an answer; likeliest first.

        ids: of the batch's requests; known: batches that are another's.
        """
        ...

    async def discard(self, key: Key, file: str) -> None:
        """Removes the upload of a batch that will not start."""
        ...

    async def look(self, batch: str) -> Status: ...

    def lines(self, batch: str, status: Status) -> AsyncIterator[bytes]:
        """The lines of a batch's results, in any order."""
        ...

    def result(self, line: Json) -> Result:
        """What a line says; raises MalformedReply."""
        ...

    async def cancel(self, batch: str) -> None: ...
