"""Server-sent events: one JSON text per `data:` line, ended by `data: [DONE]`.

The Responses API names its events and has no last line: there an event's first field is its type.

The status is sent with the first event, so that an earlier error can have its own status. The
server waits up to WRITE_TIMEOUT_S for a client that does not read; meanwhile the session
(`outbox.py`) merges its unread deltas, so that their memory is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from aiohttp import web

from sgc.runtime.engine.http.calls.request_ids import id_of
from sgc.runtime.engine.http.errors import HttpError, failed, log
from sgc.runtime.engine.http.render import dumps

WRITE_TIMEOUT_S = 60.0
_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}


async def respond(
    request: web.Request,
    events: AsyncGenerator[str],
    failed_event: Callable[[HttpError], str] | None = None,
) -> web.StreamResponse:
    """Sends the events, which are JSON texts; an error is sent as the last event. failed_event:
    makes the Responses API's event of an error."""
    send = _send if failed_event is None else _send_named
    told = failed_event or (lambda error: dumps(error.body))
    first = await anext(events)
    response = web.StreamResponse(headers=_HEADERS)
    try:
        await response.prepare(request)
        await send(response, first)
        try:
            async for event in events:
                await send(response, event)
        except HttpError as error:
            await send(response, told(error))
        except (ConnectionError, TimeoutError):
            raise
        except Exception:  # the status is sent already, so only an event can tell the client
            log.exception(
                "%s %s %r failed in its stream", id_of(request), request.method, request.path
            )
            await send(response, told(failed()))
        if failed_event is None:
            await _write(response, b"data: [DONE]\n\n")
    except (ConnectionError, TimeoutError):  # the client disconnected, or did not read for too long
        if request.transport is not None:
            request.transport.abort()
    return response


async def _send(response: web.StreamResponse, event: str) -> None:
    await _write(response, f"data: {event}\n\n".encode())


async def _send_named(response: web.StreamResponse, event: str) -> None:
    name = event.removeprefix('{"type":"').partition('"')[0]
    await _write(response, f"event: {name}\ndata: {event}\n\n".encode())


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_TIMEOUT_S):
        await response.write(data)
