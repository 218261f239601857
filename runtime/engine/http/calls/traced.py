"""Makes a span for each HTTP request, around the spans of the requests and runs that it causes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from sgc.runtime.engine.logs.access import QUIET_PATHS
from sgc.runtime.engine.logs.spans import ServerSpans
from sgc.runtime.telemetry.traceparent import TRACEPARENT, valid

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def tracing_to(spans: ServerSpans) -> Any:
    """The middleware; it encloses those that turn errors into responses."""

    @web.middleware
    async def traced(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in QUIET_PATHS:
            return await handler(request)
        resource = request.match_info.route.resource
        route = "unknown" if resource is None else resource.canonical
        span = spans.begin_http(request.method, route, valid(request.headers.get("traceparent")))
        TRACEPARENT.set(spans.traceparent_of(span))
        status = None
        try:
            response = await handler(request)
            status = response.status if request.transport is not None else None
            return response
        finally:
            spans.end_http(span, status)

    return traced
