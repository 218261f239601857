"""Serves one HTTP site in the running event loop, with bounded connections and checked tokens. The
APIs (`app.py`) are one site, the metrics another.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any

from aiohttp import web

from sgc.errors import UsageError
from sgc.runtime.engine.http.body import too_large
from sgc.runtime.engine.http.calls.guard import CALLER, guard
from sgc.runtime.engine.http.calls.request_ids import HEADER, id_of
from sgc.runtime.engine.http.connections import Connections
from sgc.runtime.engine.http.errors import HttpError, failed, log
from sgc.runtime.engine.preparing.bounds import MAX_MESSAGE_BYTES
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.listen import Address, Security, check_free
from sgc.runtime.engine.worker.link import WorkerDied

STOP_GRACE_S = 1.0
TLS_TIMEOUT_S = 10.0
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_wire_log = logging.getLogger("sgc.http.wire")
_wire_log.setLevel(logging.CRITICAL)  # the library logs each client that does not speak HTTP


def application(
    routes: Iterable[web.RouteDef],
    security: Security,
    connections: Connections,
    open_paths: frozenset[str] = frozenset(),
    observers: Sequence[Any] = (),
) -> web.Application:
    """observers: middlewares that see every request and its answer."""
    app = web.Application(
        middlewares=[
            connections.middleware,
            *observers,
            errors_as_json,
            guard(security.tokens, open_paths),
        ],
        client_max_size=MAX_MESSAGE_BYTES,
    )
    app.add_routes(routes)
    app.on_response_prepare.append(_headers)
    return app


@contextlib.asynccontextmanager
async def serving(
    app: web.Application,
    connections: Connections,
    address: Address,
    tls: ssl.SSLContext | None,
) -> AsyncIterator[str]:
    """Serves until the block ends; yields the URL."""
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=_wire_log,
        handler_cancellation=True,  # a client that hangs up cancels its requests
        auto_decompress=False,
        shutdown_timeout=STOP_GRACE_S,
    )
    await runner.setup()
    assert runner.server is not None
    connections.attach(runner.server)
    sweeping = asyncio.create_task(connections.sweep())
    try:
        server = await _listen(connections, address, tls)
        try:
            yield _url(server, address, tls)
        finally:
            server.close()
    finally:
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)
        await runner.cleanup()


async def _listen(
    connections: Connections, address: Address, tls: ssl.SSLContext | None
) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(
            connections.protocol,
            address.host,
            address.port,
            ssl=tls,
            ssl_handshake_timeout=TLS_TIMEOUT_S if tls else None,
            backlog=128,
        )
    except OSError as error:
        check_free(address)  # raises an error that gives the reason
        raise UsageError(f"cannot listen on {address.host}:{address.port}") from error


def _url(server: asyncio.Server, address: Address, tls: ssl.SSLContext | None) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    port = server.sockets[0].getsockname()[1]
    return f"{'https' if tls else 'http'}://{host}:{port}"


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Sends every error in OpenAI's form; an internal error is logged, and its text is not sent.

    An error's traceback refers to this frame, and so to all of the request's objects. The traceback
    is dropped, and no name refers to the error: else only the cyclic collector, which seldom runs,
    would free these objects.
    """
    try:
        return await handler(request)
    except Exception as error:
        answer = _answer(_told(error, request))
        error.__traceback__ = None
        return answer


def _told(error: Exception, request: web.Request) -> HttpError:
    if isinstance(error, HttpError):
        return error
    if isinstance(error, WorkerDied):
        return HttpError(503, str(error), code="unavailable")
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return too_large()
    if isinstance(error, web.HTTPMethodNotAllowed):
        methods = ", ".join(sorted(error.allowed_methods))
        return HttpError(405, f"{request.path} takes {methods}")
    if isinstance(error, web.HTTPException):
        return HttpError(error.status, f"{error.reason}: {request.method} {request.path[:200]}")
    where = (id_of(request), request.method, request.path)
    log.error("%s %s %r failed", *where, exc_info=error)
    return failed()


def _answer(error: HttpError) -> web.Response:
    return web.json_response(error.body, status=error.status, headers=error.headers)


async def _headers(request: web.Request, response: web.StreamResponse) -> None:
    """Adds the request's id and the rest of its token's limits, and replaces the Server header,
    which would reveal the library's version."""
    response.headers[HEADER] = id_of(request)
    caller: Caller | None = request.get(CALLER)
    if caller is not None and caller.account is not None:
        response.headers.update(caller.account.headers())
    response.headers["Server"] = "sgc"
