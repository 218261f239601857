"""A scripted provider with batches: OpenAI's files and batches, Anthropic's message batches.

It follows the documented contract, and refuses what does not. A batch advances by one state with
each look at it; replies are those of `ProviderServer`. `outcome` says what becomes of a request,
`step` is called before and after each step, and may return a fault, or end the client.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from providers.provider_server import (
    Ask,
    Fault,
    Json,
    ProviderServer,
    _whole_completion,
    _whole_message,
)

ENDPOINTS = {"/v1/chat/completions": "chat", "/v1/completions": "text"}
CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
STATES = ("validating", "in_progress", "finalizing", "completed")
OK, EXPIRED, CANCELLED, MISSING = "ok", "expired", "cancelled", "missing"
TWICE, DAMAGED, ODD = "twice", "damaged", "odd"


@dataclass
class Batch:
    """requests: by custom_id, their bodies; n_looks: at it; refused: errors of a failed one."""

    id: str
    kind: str
    requests: dict[str, Json]
    told: Json
    n_looks: int = 0
    status: str = ""
    lines: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    refused: list[Json] = field(default_factory=list)
    created: float = 0.0
    is_cancelled: bool = False


class BatchServer(ProviderServer):
    """n_polls: looks at a batch until it is over. submitted: how often each custom_id was."""

    def __init__(
        self,
        outcome: Callable[[Batch, str, Json], Any] = lambda batch, id, body: OK,
        step: Callable[[str, str], Fault | None] = lambda name, when: None,
        n_polls: int = 2,
        max_requests: int = 50_000,
        max_bytes: int = 200_000_000,
        refuse: Callable[[Batch], list[Json]] = lambda batch: [],
        **settings: Any,
    ) -> None:
        self.outcome, self.step, self.n_polls = outcome, step, n_polls
        self.max_requests, self.max_bytes, self.refuse = max_requests, max_bytes, refuse
        self.files: dict[str, tuple[str, bytes]] = {}
        self.batches: dict[str, Batch] = {}
        self.submitted: Counter[str] = Counter()
        self.steps: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.results_at = ""  # another server, by its address
        self.line_s = 0.0  # between two lines of results
        super().__init__(**settings)

    def add_routes(self, app: web.Application) -> None:
        for method, path, handler in (
            ("POST", "/v1/files", self._upload),
            ("GET", "/v1/files", self._files),
            ("DELETE", "/v1/files/{id}", self._delete),
            ("GET", "/v1/files/{id}/content", self._content),
            ("POST", "/v1/batches", self._create),
            ("GET", "/v1/batches", self._list),
            ("GET", "/v1/batches/{id}", self._look),
            ("POST", "/v1/batches/{id}/cancel", self._cancel),
            ("POST", "/v1/messages/batches", self._create_messages),
            ("GET", "/v1/messages/batches", self._list_messages),
            ("GET", "/v1/messages/batches/{id}", self._look),
            ("GET", "/v1/messages/batches/{id}/results", self._results),
            ("POST", "/v1/messages/batches/{id}/cancel", self._cancel),
        ):
            app.router.add_route(method, path, self._stepped(handler))

    def _stepped(self, handler: Any) -> Any:
        name = handler.__name__.removeprefix("_").removesuffix("_messages")

        async def handle(request: web.Request) -> web.StreamResponse:
            self.steps[name] += 1
            fault = self.step(name, "before")
            if fault is None:
                response = await handler(request)
                fault = self.step(name, "after")
                if fault is None:
                    return response
            if fault.kind == "cut":
                request.transport.close()  # type: ignore[union-attr]
                return web.Response(status=500)
            body = fault.body or {"type": "error", "error": {"message": "scripted"}}
            return web.json_response(body, status=fault.status, headers=fault.headers)

        return handle

    def _refused(self, why: str, status: int = 400) -> web.Response:
        self.wrong.append(why)
        error = {"type": "invalid_request_error", "message": why}
        return web.json_response({"type": "error", "error": error}, status=status)

    # -- OpenAI's -------------------------------------------------------------------------

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        file = form["file"]
        if form.get("purpose") != "batch" or not file.filename.endswith(".jsonl"):  # type: ignore[union-attr]
            return self._refused("the purpose must be batch, and the file .jsonl")
        content = file.file.read()  # type: ignore[union-attr]
        if len(content) > self.max_bytes:
            return self._refused(f"the file has {len(content)} bytes", 413)
        id = f"file-{len(self.files)}"
        self.files[id] = file.filename, content  # type: ignore[union-attr]
        return web.json_response(self._file(id))

    def _file(self, id: str) -> Json:
        name, content = self.files[id]
        return {"id": id, "object": "file", "bytes": len(content), "created_at": int(time.time()),
                "filename": name, "purpose": "batch", "status": "processed"}  # fmt: skip

    async def _files(self, request: web.Request) -> web.Response:
        assert request.query.get("purpose") == "batch"
        found = [self._file(id) for id in reversed(self.files)]
        return web.json_response({"object": "list", "data": found, "has_more": False})

    async def _delete(self, request: web.Request) -> web.Response:
        id = request.match_info["id"]
        if self.files.pop(id, None) is None:
            return self._refused("no such file", 404)
        return web.json_response({"id": id, "object": "file", "deleted": True})

    async def _content(self, request: web.Request) -> web.StreamResponse:
        id = request.match_info["id"]
        batch = self.batches[id.partition("/")[0].removeprefix("out-").removeprefix("err-")]
        lines = batch.lines if id.startswith("out-") else batch.errors
        return await self._send(request, lines)

    async def _send(self, request: web.Request, lines: list[bytes]) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionResetError):  # the job has all that it needs
            for line in lines:
                await response.write(line + b"\n")
                if self.line_s:
                    await asyncio.sleep(self.line_s)
            await response.write_eof()
        return response

    async def _create(self, request: web.Request) -> web.Response:
        asked = await request.json()
        known = {"input_file_id", "endpoint", "completion_window", "metadata"}
        if set(asked) - known or asked.get("completion_window") != "24h":
            return self._refused(f"unknown fields, or no window of 24h: {sorted(asked)}")
        if asked["endpoint"] not in ENDPOINTS or asked["input_file_id"] not in self.files:
            return self._refused("no such endpoint, or no such file")
        metadata = asked.get("metadata") or {}
        if not all(isinstance(v, str) and len(v) <= 512 for v in metadata.values()):
            return self._refused("metadata must be short texts")
        content = self.files[asked["input_file_id"]][1]
        requests: dict[str, Json] = {}
        for line in content.decode().splitlines():
            row = json.loads(line)
            if set(row) != {"custom_id", "method", "url", "body"} or row["method"] != "POST":
                return self._refused(f"a line has {sorted(row)}")
            if row["url"] != asked["endpoint"] or row["body"].get("stream"):
                return self._refused("a line's url is not the batch's, or it asks for a stream")
            if row["custom_id"] in requests:
                return self._refused("a custom_id comes twice")
            requests[row["custom_id"]] = row["body"]
        return self._begin(ENDPOINTS[asked["endpoint"]], requests, asked)

    def _begin(self, kind: str, requests: dict[str, Json], asked: Json) -> web.Response:
        if not 0 < len(requests) <= self.max_requests:
            return self._refused(f"a batch of {len(requests)} requests")
        if not all(CUSTOM_ID.fullmatch(id) for id in requests):
            return self._refused("a custom_id is not of its form")
        if len({body["model"] for body in requests.values()}) != 1:
            return self._refused("a batch is of one model")
        batch = Batch(f"batch_{len(self.batches)}", kind, requests, asked, created=time.time())
        self.batches[batch.id] = batch
        batch.refused = self.refuse(batch)
        if not batch.refused:
            self.submitted.update(list(requests))
        return web.json_response(self._told(batch))

    def _told(self, batch: Batch) -> Json:
        if batch.kind == "messages":
            return _message_batch(batch, self.results_at or self.url)
        n = len(batch.requests)
        is_over = batch.status in ("completed", "expired", "cancelled")
        counts = {"total": n, "completed": len(batch.lines), "failed": len(batch.errors)}
        return {
            "id": batch.id, "object": "batch", "endpoint": batch.told["endpoint"],
            "input_file_id": batch.told["input_file_id"], "completion_window": "24h",
            "created_at": int(batch.created), "status": batch.status or "validating",
            "metadata": batch.told.get("metadata"), "request_counts": counts,
            "output_file_id": f"out-{batch.id}" if is_over and batch.lines else None,
            "error_file_id": f"err-{batch.id}" if is_over and batch.errors else None,
            "errors": {"object": "list", "data": batch.refused} if batch.refused else None,
        }  # fmt: skip

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response(self._page(request, "after"))

    def _page(self, request: web.Request, cursor: str) -> Json:
        """Two a page: what lists several has to turn pages."""
        kind = "messages" if "messages" in request.path else "openai"
        of_kind = [b for b in self.batches.values() if (b.kind == "messages") == (kind != "openai")]
        found = [self._told(batch) for batch in reversed(of_kind)]
        after = request.query.get(cursor)
        if after:
            at = [each["id"] for each in found].index(after)
            found = found[at + 1 :]
        page = found[:2]
        return {"object": "list", "data": page, "has_more": len(found) > 2,
                "first_id": page[0]["id"] if page else None,
                "last_id": page[-1]["id"] if page else None}  # fmt: skip

    async def _look(self, request: web.Request) -> web.Response:
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return self._refused("no such batch", 404)
        batch.n_looks += 1
        if batch.refused:
            batch.status = "failed"
        elif batch.n_looks >= self.n_polls and batch.status not in ("completed", "ended"):
            self._end(batch)
        elif batch.n_looks < self.n_polls and batch.kind != "messages":
            batch.status = STATES[min(batch.n_looks, 2)]
        return web.json_response(self._told(batch))

    async def _cancel(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        batch.is_cancelled = True
        return web.json_response(self._told(batch))

    def _end(self, batch: Batch) -> None:
        """Makes the results, in another order than the requests came."""
        if batch.status in ("expired", "cancelled"):
            return
        batch.status = "ended" if batch.kind == "messages" else "completed"
        made: list[tuple[bool, bytes]] = []
        for id, body in batch.requests.items():
            what = CANCELLED if batch.is_cancelled else self.outcome(batch, id, body)
            if what in (EXPIRED, CANCELLED) and batch.kind != "messages":
                batch.status = what
            made += self._lines(batch, id, body, what)
        random.Random(batch.id).shuffle(made)
        batch.lines = [line for is_error, line in made if not is_error]
        batch.errors = [line for is_error, line in made if is_error]

    def _lines(self, batch: Batch, id: str, body: Json, what: Any) -> list[tuple[bool, bytes]]:
        if what == MISSING:
            return []
        if what == DAMAGED:
            return [(False, b'{"custom_id": "' + id.encode() + b'", "resp')]
        of = _message_line if batch.kind == "messages" else _completion_line
        if isinstance(what, Fault) or what in (EXPIRED, CANCELLED):
            return [(batch.kind != "messages", of(id, None, what))]
        ask = Ask(len(self.asks), batch.kind, json.dumps(body).encode(), {})
        self.asks.append(ask)
        self.answered.append(ask)
        texts = [self._completion(ask) for _ in range(body.get("n", 1))]
        whole = _whole_message if batch.kind == "messages" else _whole_completion
        reply: Json = whole(ask, texts, self._usage(ask, texts))
        if what == ODD:
            reply = {"id": "x", "choices": 7, "content": 7}
        line = of(id, reply, OK)
        strange = of(f"never-{id}"[:64], reply, OK)
        return [(False, line)] * (2 if what == TWICE else 1) + (
            [(False, strange)] if what == "strange" else []
        )

    # -- Anthropic's ----------------------------------------------------------------------

    async def _create_messages(self, request: web.Request) -> web.Response:
        asked = await request.json()
        if set(asked) != {"requests"}:
            return self._refused(f"unknown fields: {sorted(asked)}")
        requests: dict[str, Json] = {}
        for row in asked["requests"]:
            if set(row) != {"custom_id", "params"} or row["params"].get("stream"):
                return self._refused(f"a request has {sorted(row)}, or asks for a stream")
            if row["custom_id"] in requests:
                return self._refused("a custom_id comes twice")
            requests[row["custom_id"]] = row["params"]
        return self._begin("messages", requests, {})

    async def _list_messages(self, request: web.Request) -> web.Response:
        return web.json_response(self._page(request, "after_id"))

    async def _results(self, request: web.Request) -> web.StreamResponse:
        batch = self.batches[request.match_info["id"]]
        return await self._send(request, batch.lines + batch.errors)


def _message_batch(batch: Batch, url: str) -> Json:
    names = ("processing", "succeeded", "errored", "canceled", "expired")
    counts = dict.fromkeys(names, 0)
    is_over = batch.status == "ended"
    counts["succeeded" if is_over else "processing"] = len(batch.requests)
    made = datetime.fromtimestamp(batch.created, UTC).isoformat()
    return {
        "id": batch.id, "type": "message_batch", "created_at": made, "expires_at": made,
        "processing_status": batch.status or ("canceling" if batch.is_cancelled else "in_progress"),
        "request_counts": counts, "ended_at": made if is_over else None, "archived_at": None,
        "cancel_initiated_at": made if batch.is_cancelled else None,
        "results_url": f"{url}/v1/messages/batches/{batch.id}/results" if is_over else None,
    }  # fmt: skip


def _completion_line(id: str, reply: Json | None, what: Any) -> bytes:
    row: Json = {"id": f"r-{id}", "custom_id": id, "response": None, "error": None}
    if isinstance(what, Fault):
        row["response"] = {"status_code": what.status, "request_id": "q", "body": what.body}
    elif what in (EXPIRED, CANCELLED):
        row["error"] = {"code": f"batch_{what}", "message": "it could not be executed"}
    else:
        row["response"] = {"status_code": 200, "request_id": "q", "body": reply}
    return json.dumps(row).encode()


def _message_line(id: str, reply: Json | None, what: Any) -> bytes:
    if isinstance(what, Fault):
        kind = {400: "invalid_request_error", 529: "overloaded_error", 500: "api_error"}
        error = {"type": kind[what.status], "message": what.body["error"]["message"]}
        result = {"type": "errored", "error": {"type": "error", "error": error}}
    elif what in (EXPIRED, CANCELLED):
        result = {"type": "canceled" if what == CANCELLED else what}
    else:
        result = {"type": "succeeded", "message": reply}  # type: ignore[dict-item]
    return json.dumps({"custom_id": id, "result": result}).encode()
