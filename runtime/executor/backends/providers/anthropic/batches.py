"""Anthropic's Message Batches, through its SDK: requests in, lines of results out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from httpx2 import URL

from sgc.runtime.executor.backends.providers.anthropic.api import AnthropicApi
from sgc.runtime.executor.backends.providers.batches.contract import (
    End,
    Entry,
    Json,
    Key,
    Result,
    Status,
)
from sgc.runtime.executor.backends.providers.batches.lines import id_of, split_lines
from sgc.runtime.executor.backends.providers.models.models import Facts
from sgc.runtime.executor.backends.providers.wire.addresses import is_vendors
from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply, printable
from sgc.runtime.executor.backends.providers.wire.fields import mapping
from sgc.runtime.executor.backends.providers.wire.sdk import an_object

MAX_LISTED = 10_000
CLOCKS_APART_S = 3600.0
_ENDS = {"succeeded": End.REPLIED, "errored": End.FAILED, "canceled": End.CANCELLED,
         "expired": End.EXPIRED}  # fmt: skip
_STATUSES = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402,
    "permission_error": 403, "not_found_error": 404, "request_too_large": 413,
    "rate_limit_error": 429, "api_error": 500, "timeout_error": 504, "overloaded_error": 529,
}  # fmt: skip


class AnthropicBatches:
    """Batches of one model's messages."""

    max_requests = 100_000
    max_bytes = 256_000_000
    has_names = False

    def __init__(self, api: AnthropicApi, facts: Facts) -> None:
        self._api, self._facts = api, facts
        self._client = api.sdk_client
        self._batches = self._client.messages.batches

    def entry(self, id: str, body: Json) -> Entry:
        asked = {"custom_id": id, "params": body}
        return Entry.of(id, asked)

    async def upload(self, key: Key, entries: Sequence[Entry]) -> str:
        """Nothing is uploaded: `start` sends the requests."""
        return ""

    async def start(self, key: Key, file: str, entries: Sequence[Entry]) -> str:
        with self._api.typed_errors(""):
            requests = [json.loads(entry.line) for entry in entries]
            return str(an_object(await self._batches.create(requests=requests)).id)

    async def find(self, key: Key, ids: Collection[str], known: Collection[str]) -> list[str]:
        """This API takes no names for batches. So: those of that time with as many requests; their
        results, once there, say which of them has these requests."""
        since = datetime.fromtimestamp(key.since - CLOCKS_APART_S, UTC)
        found, n_seen = [], 0
        with self._api.typed_errors(""):
            async for batch in self._batches.list(limit=100):
                n_seen += 1
                if batch.created_at < since or n_seen >= MAX_LISTED:
                    break  # the newest come first
                n_requests = sum(_counts(batch.request_counts).values())
                if n_requests == key.n_requests and batch.id not in known:
                    found.append(str(batch.id))
        return found

    async def discard(self, key: Key, file: str) -> None:
        """Nothing was uploaded."""

    async def look(self, batch: str) -> Status:
        with self._api.typed_errors(""):
            found = an_object(await self._batches.retrieve(batch))
            counts = _counts(found.request_counts)
            n_done = sum(counts.values()) - counts.get("processing", 0)
            urls = (str(found.results_url),) if found.results_url else ()
            word = printable(str(found.processing_status)[:40])
            is_cancelled = found.cancel_initiated_at is not None
            rest = End.CANCELLED if is_cancelled else None
            return Status(word, word == "ended", n_done, rest, results=urls)

    async def lines(self, batch: str, status: Status) -> AsyncIterator[bytes]:
        for url in status.results:
            self._check_address(url)
            with self._api.typed_errors(""):
                results = self._batches.with_streaming_response.results(batch)
                async with results as response:
                    async for line in split_lines(response.iter_bytes()):
                        yield line

    def _check_address(self, url: str) -> None:
        """Raises MalformedReply for an address that may not get the key."""
        at, own = URL(url), self._client.base_url
        is_own = (at.scheme, at.netloc) == (own.scheme, own.netloc)
        if not at.is_relative_url and not is_own and not is_vendors("anthropic", url):
            raise MalformedReply(
                f"the results are at another server: {url[:200]}",
                hint="a key goes only to the server that is asked: is its address right?",
            )

    def result(self, line: Json) -> Result:
        id = id_of(line)
        result = mapping(line.get("result"))
        end = _ENDS.get(str(result.get("type")))
        if end is None:
            raise MalformedReply(f"the result of {id} is {str(result.get('type'))[:40]!r}")
        if end is End.REPLIED:
            if not isinstance(result.get("message"), dict):
                raise MalformedReply(f"the result of {id} has no message")
            return Result(id, end, result["message"])
        if end is not End.FAILED:
            return Result(id, end)
        said = mapping(result.get("error"))
        kind = mapping(said.get("error")).get("type") or said.get("type")
        status = _STATUSES.get(str(kind), 400)
        return Result(id, end, error=self._api.failure_of(status, said, self._facts.model))

    async def cancel(self, batch: str) -> None:
        with self._api.typed_errors(""):
            await self._batches.cancel(batch)


def _counts(counts: Any) -> dict[str, int]:
    found = counts.model_dump(warnings=False) if counts is not None else {}
    return {name: n for name, n in found.items() if isinstance(n, int)}
