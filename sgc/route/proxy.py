"""Sends each HTTP request to one engine, or to another if that one fails, and its answer back.

A request is sent to another engine only if nothing of its answer was passed on. A program may have
called tools by then, so it is sent again only if the first engine did not receive it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

import aiohttp
from aiohttp import hdrs, web

from sgc.errors import EngineUnavailable, UsageError
from sgc.route.engines import BLOCK, Engines, HttpFace
from sgc.route.prompts import cached_share_of, n_out_of, salt_of, text_of
from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.calls.guard import CALLER
from sgc.runtime.engine.http.errors import BEGUN, HttpError, log
from sgc.runtime.executor.routing.blocks import blocks_of
from sgc.runtime.executor.routing.router import NobodyAnswers, Ticket

MAX_REPLY_BYTES = 64 * 1024 * 1024
# Headers of one connection are not passed on (RFC 9110, 7.6.1); lengths are computed anew.
_OF_CONNECTION = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer",
     "transfer-encoding", "upgrade", "host", "content-length", "server", "date", "expect"}
)  # fmt: skip
_ADDED = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")  # the library adds them
_REFUSED = (429, 503)


class _Failed(Exception):
    """The engine did not answer, or not to the end. was_sent: it may have begun the request."""

    def __init__(self, why: str, was_sent: bool) -> None:
        super().__init__(why)
        self.was_sent = was_sent


class Proxy:
    def __init__(self, engines: Engines, face: HttpFace, bodies: BodyReader) -> None:
        self._engines, self._face, self._bodies = engines, face, bodies

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/health", self._health),
            web.get("/route", self._status),
            web.route("*", "/{path:.*}", self._forward),
        ]

    async def _health(self, request: web.Request) -> web.Response:
        if self._engines.is_any_up():
            return web.Response(text="ok")
        raise _unavailable("no engine answers")

    async def _status(self, request: web.Request) -> web.Response:
        return web.json_response({"model": self._face.model, "engines": self._engines.rows()})

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        if not self._engines.has(self._face.kind):
            raise _unavailable("the engines behind this address are reached over gRPC only")
        data = await self._bodies.read_bytes(request) if request.can_read_body else b""
        body: Mapping[str, Any] = {}
        is_form = request.content_type.startswith("multipart/")
        if data and request.method == hdrs.METH_POST and not is_form:
            body = await self._bodies.parse(request, data)
        domain = request[CALLER].domain
        blocks = blocks_of(text_of(body), BLOCK, salt_of(body, domain))
        n_out = n_out_of(body, self._engines.mean_out) if body else 0.0
        is_safe = not _runs_program(request.path, body)
        tried: set[str] = set()
        refused: web.StreamResponse | None = None
        while True:
            try:
                ticket = self._engines.router.send(blocks, n_out, tried)
            except NobodyAnswers:
                if refused is not None:
                    return refused
                raise _unavailable("no engine answers") from None
            tried.add(ticket.member.name)
            try:
                place = self._engines.places[ticket.member.name]
                await self._face.check(place)
                answer = await self._answered(request, data, place.http, ticket, len(blocks))
            except UsageError as error:
                log.warning("%s", error)  # this engine is tried again later
                self._engines.failed(ticket)
                continue
            except (_Failed, EngineUnavailable) as error:
                self._engines.failed(ticket)
                if is_safe or not getattr(error, "was_sent", False):
                    continue
                raise _unavailable("the engine was lost while it ran a program") from error
            except BaseException:
                self._engines.router.left(ticket)
                raise
            is_refusal = answer.status in _REFUSED and isinstance(answer, web.Response)
            if not is_refusal or not (is_safe or answer.headers.get(BEGUN) == "no"):
                return answer
            refused = answer

    async def _answered(
        self, request: web.Request, data: bytes, url: str, ticket: Ticket, n_blocks: int
    ) -> web.StreamResponse:
        """The engine's answer; ends the ticket. Raises _Failed if the engine failed before anything
        was passed on."""
        async with await self._opened(request, data, url) as response:
            if response.content_type == "text/event-stream":
                first = await _next(response)
                return await self._streamed(request, response, first, ticket)
            reply = await _read(response)
        share = self._learned(reply) if response.status == 200 else None
        self._engines.router.done(ticket, None if share is None else round(share * n_blocks))
        return web.Response(body=reply, status=response.status, headers=_passed(response.headers))

    async def _opened(
        self, request: web.Request, data: bytes, engine: str
    ) -> aiohttp.ClientResponse:
        try:
            return await self._face.session.request(
                request.method, engine + request.path_qs, data=data or None,
                headers=self._headers(request), allow_redirects=False, skip_auto_headers=_ADDED,
            )  # fmt: skip
        except aiohttp.ClientConnectorError as error:
            raise _Failed(str(error), was_sent=False) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _Failed(str(error), was_sent=True) from error

    def _headers(self, request: web.Request) -> list[tuple[str, str]]:
        """The client's own headers, with the router's token if the client has none."""
        passed = _passed(request.headers)
        if hdrs.AUTHORIZATION not in request.headers:
            passed += self._face.own_headers.items()
        return passed

    async def _streamed(
        self,
        request: web.Request,
        response: aiohttp.ClientResponse,
        chunk: bytes,
        ticket: Ticket,
    ) -> web.StreamResponse:
        """Passes on a stream from its first chunk on: no other engine can go on with it."""
        answer = web.StreamResponse(status=response.status, headers=_passed(response.headers))
        try:
            await answer.prepare(request)
            while chunk:
                await answer.write(chunk)
                chunk = await _next(response)
        except _Failed:
            self._engines.failed(ticket)
            lost = _unavailable("the engine was lost in the middle of its answer")
            chunk = b"data: " + json.dumps(lost.body).encode() + b"\n\n"
        except ConnectionResetError:  # the client has disconnected
            self._engines.router.left(ticket)
            return answer
        else:
            self._engines.router.done(ticket)
        with contextlib.suppress(ConnectionResetError):
            await answer.write(chunk)
            await answer.write_eof()
        return answer

    def _learned(self, reply: bytes) -> float | None:
        """Records the share of the prompt that was cached, and the reply's length."""
        try:
            found = json.loads(reply)
        except (ValueError, RecursionError):
            return None
        usage = found.get("usage") if isinstance(found, dict) else None
        n = usage.get("completion_tokens") if isinstance(usage, dict) else None
        if isinstance(n, int) and n >= 0:
            self._engines.learn(n)
        return cached_share_of(found)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The whole body, so that another engine can answer if this one is lost on the way."""
    parts, size = [], 0
    while chunk := await _next(response):
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_REPLY_BYTES:
            raise HttpError(502, f"the engine's answer has more than {MAX_REPLY_BYTES} bytes")
    return b"".join(parts)


async def _next(response: aiohttp.ClientResponse) -> bytes:
    """The next chunk of a body; b"" at its end. Raises _Failed if the engine is lost."""
    try:
        return await response.content.readany()
    except (aiohttp.ClientError, TimeoutError) as error:
        raise _Failed(str(error), was_sent=True) from error


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
