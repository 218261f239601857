"""Sends each HTTP request to one engine and its answer back; to another engine, if that one fails.

A request is sent again as long as nothing of its answer was passed on. Programs with tools may have
done something by then: they are sent again only if they were not sent at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import aiohttp
from aiohttp import hdrs, web

from sgc.errors import EngineUnavailable
from sgc.route.engines import BLOCK, Engines
from sgc.route.prompts import cached_share_of, n_out_of, salt_of, text_of
from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.calls.guard import CALLER
from sgc.runtime.engine.http.errors import HttpError
from sgc.runtime.executor.routing.blocks import blocks_of
from sgc.runtime.executor.routing.router import NobodyAnswers, Ticket

MAX_REPLY_BYTES = 64 * 1024 * 1024
MEAN_OUT = 128.0  # tokens, before replies have told
# Of one connection, and so not passed on (RFC 9110, 7.6.1); lengths are those of what is sent.
_OF_CONNECTION = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer",
     "transfer-encoding", "upgrade", "host", "content-length", "server", "date"}
)  # fmt: skip
_ADDED = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")  # by the library
_REFUSED = (429, 503)


class _Failed(Exception):
    """The engine did not answer, or not to the end. was_sent: it may have begun."""

    def __init__(self, why: str, was_sent: bool) -> None:
        super().__init__(why)
        self.was_sent = was_sent


class Proxy:
    def __init__(self, engines: Engines, bodies: BodyReader) -> None:
        self._engines, self._bodies = engines, bodies
        self._mean_out = MEAN_OUT

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/health", self._health),
            web.get("/route", self._status),
            web.route("*", "/{path:.*}", self._forward),
        ]

    async def _health(self, request: web.Request) -> web.Response:
        if any(row["is_up"] for row in self._engines.rows()):
            return web.Response(text="ok")
        raise _unavailable("no engine answers")

    async def _status(self, request: web.Request) -> web.Response:
        return web.json_response({"model": self._engines.model, "engines": self._engines.rows()})

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        data = await self._bodies.read_bytes(request) if request.can_read_body else b""
        body: Mapping[str, Any] = {}
        if data and request.method == hdrs.METH_POST:
            body = await self._bodies.parse(request, data)
        domain = request[CALLER].domain
        blocks = blocks_of(text_of(body), BLOCK, salt_of(body, domain))
        n_out = n_out_of(body, self._mean_out) if body else 0.0
        is_safe = not _runs_program(request.path, body)
        tried: set[str] = set()
        refused: web.Response | None = None
        while True:
            try:
                ticket = self._engines.router.send(blocks, n_out, tried)
            except NobodyAnswers:
                if refused is not None:
                    return refused
                raise _unavailable("no engine answers") from None
            url = ticket.member.name
            tried.add(url)
            try:
                await self._engines.check(url)
                answer = await self._answered(request, data, ticket, len(blocks))
            except (_Failed, EngineUnavailable) as error:
                self._engines.router.failed(ticket)
                if is_safe or not getattr(error, "was_sent", False):
                    continue
                raise _unavailable("the engine was lost while it ran a program") from error
            except BaseException:
                self._engines.router.done(ticket)
                raise
            if answer.status in _REFUSED and isinstance(answer, web.Response):
                refused = answer
                continue
            return answer

    async def _answered(
        self, request: web.Request, data: bytes, ticket: Ticket, n_blocks: int
    ) -> web.StreamResponse:
        """The engine's answer; takes back the ticket. Raises _Failed before any of it was sent."""
        router, url = self._engines.router, ticket.member.name + request.path_qs
        was_sent = True
        try:
            async with self._engines.session.request(
                request.method, url, data=data or None, headers=_passed(request.headers),
                allow_redirects=False, skip_auto_headers=_ADDED,
            ) as response:  # fmt: skip
                if response.content_type == "text/event-stream":
                    return await self._streamed(request, response, ticket)
                reply = await _read(response)
        except aiohttp.ClientConnectorError as error:
            was_sent = False
            raise _Failed(str(error), was_sent) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _Failed(str(error), was_sent) from error
        share = self._learned(reply) if response.status == 200 else None
        router.done(ticket, None if share is None else round(share * n_blocks))
        return web.Response(body=reply, status=response.status, headers=_passed(response.headers))

    async def _streamed(
        self, request: web.Request, response: aiohttp.ClientResponse, ticket: Ticket
    ) -> web.StreamResponse:
        answer = web.StreamResponse(status=response.status, headers=_passed(response.headers))
        first = await response.content.readany()  # until then another engine may answer
        await answer.prepare(request)
        try:
            await answer.write(first)
            while chunk := await response.content.readany():
                await answer.write(chunk)
        except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError):
            self._engines.router.failed(ticket)
            lost = _unavailable("the engine was lost in the middle of its answer")
            await answer.write(b"data: " + json.dumps(lost.body).encode() + b"\n\n")
        else:
            self._engines.router.done(ticket)
        await answer.write_eof()
        return answer

    def _learned(self, reply: bytes) -> float | None:
        """The share of the prompt that was cached, by the reply; how long replies are."""
        try:
            found = json.loads(reply)
        except (ValueError, RecursionError):
            return None
        usage = found.get("usage") if isinstance(found, dict) else None
        n = usage.get("completion_tokens") if isinstance(usage, dict) else None
        if isinstance(n, int) and n >= 0:
            self._mean_out += 0.05 * (n - self._mean_out)
        return cached_share_of(found)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The whole body, so that another engine can answer if this one is lost on the way."""
    parts, size = [], 0
    while chunk := await response.content.readany():
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_REPLY_BYTES:
            raise HttpError(502, f"the engine's answer has more than {MAX_REPLY_BYTES} bytes")
    return b"".join(parts)


def _passed(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    named = {
        name.strip().lower() for name in headers.get(hdrs.CONNECTION, "").split(",") if name.strip()
    }
    return [
        (name, value)
        for name, value in headers.items()
        if name.lower() not in _OF_CONNECTION | named
    ]


def _runs_program(path: str, body: Mapping[str, Any]) -> bool:
    return path.startswith("/v1/programs") or str(body.get("model", "")).startswith("program/")


def _unavailable(why: str) -> HttpError:
    return HttpError(503, why, code="unavailable")
