"""Server-sent events: JSON a `data:` line each, ended by `data: [DONE]`.

The status is not sent before there is a first event, so that an error before it has its own. A
client that does not read is waited for so long; what it has not read meanwhile is merged by the
session (`outbox.py`) and so bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from aiohttp import web

from sgc.runtime.engine.http.errors import HttpError, failed, log
from sgc.runtime.engine.http.render import dumps

WRITE_TIMEOUT_S = 60.0
_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}


async def respond(request: web.Request, events: AsyncGenerator[str]) -> web.StreamResponse:
    """Sends the events, JSON texts; an error on the way is one too, and the last."""
    first = await anext(events)
    response = web.StreamResponse(headers=_HEADERS)
    try:
        await response.prepare(request)
        await _send(response, first)
        try:
            async for event in events:
                await _send(response, event)
        except HttpError as error:
            await _send(response, dumps(error.body))
        except (ConnectionError, TimeoutError):
            raise
        except Exception:  # the status is sent already, so nobody else can tell the client
            log.exception("%s %r failed in its stream", request.method, request.path)
            await _send(response, dumps(failed().body))
        await _write(response, b"data: [DONE]\n\n")
    except (ConnectionError, TimeoutError):  # it hung up, or has not read for too long
        if request.transport is not None:
            request.transport.abort()
    return response


async def _send(response: web.StreamResponse, event: str) -> None:
    await _write(response, f"data: {event}\n\n".encode())


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_TIMEOUT_S):
        await response.write(data)
