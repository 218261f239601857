"""OpenAI's Batch API, through its SDK: a file of requests in, files of results and errors out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from typing import Any

from sgc.errors import BackendError
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
from sgc.runtime.executor.backends.providers.openai.api import OpenAIApi
from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply, printable
from sgc.runtime.executor.backends.providers.wire.fields import mapping
from sgc.runtime.executor.backends.providers.wire.sdk import an_object

MAX_LISTED = 10_000  # batches that are looked through for one of ours
CLOCKS_APART_S = 86_400.0  # at most, the provider's and ours
_OVER = {"completed", "failed", "expired", "cancelled"}
_RESTS = {"expired": End.EXPIRED, "cancelled": End.CANCELLED}
_ENDS = {"batch_expired": End.EXPIRED, "batch_cancelled": End.CANCELLED}
_FULL = "token_limit_exceeded"


class OpenAIBatches:
    """Batches of one model's chat or text completions."""

    max_requests = 50_000
    max_bytes = 200_000_000
    has_names = True

    def __init__(self, api: OpenAIApi, facts: Facts) -> None:
        self._api, self._facts = api, facts
        self._client = api.sdk_client
        path = "chat/completions" if facts.api == "chat" else "completions"
        self._endpoint = f"/v1/{path}"

    def entry(self, id: str, body: Json) -> Entry:
        asked = {"custom_id": id, "method": "POST", "url": self._endpoint, "body": body}
        return Entry.of(id, asked)

    async def upload(self, key: Key, entries: Sequence[Entry]) -> str:
        content = b"".join(entry.line + b"\n" for entry in entries)
        with self._api.typed_errors(""):
            file = (f"{key.name}.jsonl", content, "application/jsonl")
            found = await self._client.files.create(file=file, purpose="batch")
            return str(an_object(found).id)

    async def start(self, key: Key, file: str, entries: Sequence[Entry]) -> str:
        with self._api.typed_errors(""):
            found = await self._client.batches.create(
                input_file_id=file,
                endpoint=self._endpoint,
                completion_window="24h",
                metadata={"sgc_job": key.job, "sgc_batch": str(key.number)},
            )
            return str(an_object(found).id)

    async def find(self, key: Key, ids: Collection[str], known: Collection[str]) -> list[str]:
        wanted, n_seen = (key.job, str(key.number)), 0
        with self._api.typed_errors(""):
            async for batch in self._client.batches.list(limit=100):
                n_seen += 1
                told = mapping(batch.metadata)
                if (told.get("sgc_job"), told.get("sgc_batch")) == wanted:
                    return [str(batch.id)]
                if batch.created_at < key.since - CLOCKS_APART_S or n_seen >= MAX_LISTED:
                    break  # the newest come first
        return []

    async def discard(self, key: Key, file: str) -> None:
        """Deletes the file, also one whose id nobody heard of. A batch that is still to be made of
        it then fails."""
        files = [file] if file else []
        if not file:
            with suppress(BackendError):  # a server without a list has none to delete of it
                files = await self._files_of(key)
        for each in files:
            with suppress(BackendError), self._api.typed_errors(""):
                await self._client.files.delete(each)

    async def _files_of(self, key: Key) -> list[str]:
        found, n_seen = [], 0
        with self._api.typed_errors(""):
            async for each in self._client.files.list(purpose="batch", limit=100):
                n_seen += 1
                if each.filename == f"{key.name}.jsonl":
                    found.append(str(each.id))
                if each.created_at < key.since - CLOCKS_APART_S or n_seen >= MAX_LISTED:
                    break
        return found

    async def look(self, batch: str) -> Status:
        with self._api.typed_errors(""):
            found = await self._client.batches.retrieve(batch)
            return _status(an_object(found).model_dump(warnings=False))

    async def lines(self, batch: str, status: Status) -> AsyncIterator[bytes]:
        for file in status.results:
            with self._api.typed_errors(""):
                content = self._client.files.with_streaming_response.content(file)
                async with content as response:
                    async for line in split_lines(response.iter_bytes()):
                        yield line

    def result(self, line: Json) -> Result:
        id = id_of(line)
        response, error = mapping(line.get("response")), mapping(line.get("error"))
        if response.get("status_code") == 200 and not error:
            if not isinstance(response.get("body"), dict):
                raise MalformedReply(f"the result of {id} has no body")
            return Result(id, End.REPLIED, response["body"])
        code = error.get("code")
        if isinstance(code, str) and code in _ENDS:
            return Result(id, _ENDS[code])
        status = response.get("status_code")
        if not isinstance(status, int) and not error:
            raise MalformedReply(f"the result of {id} is neither a reply nor an error")
        said = response.get("body") or {"error": dict(error)}
        status = status if isinstance(status, int) and status != 200 else 400
        return Result(id, End.FAILED, error=self._api.failure_of(status, said, self._facts.model))

    async def cancel(self, batch: str) -> None:
        with self._api.typed_errors(""):
            await self._client.batches.cancel(batch)


def _status(found: Json) -> Status:
    word = printable(str(found.get("status"))[:40])
    counts = mapping(found.get("request_counts"))
    n_done = sum(n for name in ("completed", "failed") if isinstance(n := counts.get(name), int))
    files = tuple(str(f) for f in (found.get("output_file_id"), found.get("error_file_id")) if f)
    errors = [mapping(each) for each in mapping(found.get("errors")).get("data") or ()]
    refused = ""
    if word == "failed":
        refused = _said(errors[0]) if errors else "it does not say why"
    return Status(
        word,
        word in _OVER,
        n_done,
        _RESTS.get(word),
        refused,
        {each["line"]: _said(each) for each in errors if isinstance(each.get("line"), int)},
        any(each.get("code") == _FULL for each in errors),
        files,
    )


def _said(error: Any) -> str:
    return printable(str(error.get("message") or error.get("code") or "no message")[:500])
