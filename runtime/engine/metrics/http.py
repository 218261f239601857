"""Serves the metrics over HTTP, for Prometheus to scrape; `serving.py` starts it.

It is a site of its own, in the server's event loop, with the access rules of gRPC: an address that
others can reach needs a token (`Authorization: Bearer …`); on a server without tokens, `Host` must
name loopback. With a certificate it speaks TLS.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http.connections import Connections
from sgc.runtime.engine.http.site import application, serving
from sgc.runtime.engine.metrics.metrics import RequestMetrics, StatsCollector, StatsSource
from sgc.runtime.engine.server.listen import Address, Security
from sgc.runtime.engine.server.tally import Tally

MAX_SCRAPES = 4  # at a time; beyond it, an idle connection is closed, else the new one
CLIENT_TIMEOUT_S = 5.0


@contextlib.asynccontextmanager
async def serving_metrics(
    address: Address,
    security: Security,
    tls: ssl.SSLContext | None,
    ask: Callable[[], Awaitable[pb.Stats]],
    info: pb.Info,
    tally: Tally,
) -> AsyncIterator[str]:
    """Serves in the running event loop until the block ends; yields the URL."""
    registry = CollectorRegistry()
    tally.watch = RequestMetrics(registry).observe
    source = StatsSource(ask)
    registry.register(StatsCollector(source.known, info))

    async def scrape(request: web.Request) -> web.Response:
        await source.refresh()
        return _response(request, registry)

    connections = Connections(CLIENT_TIMEOUT_S, MAX_SCRAPES)
    app = application([web.get("/{path:.*}", scrape)], security, connections)
    try:
        source.ask()  # so that a scrape during a long first step has statistics
        async with serving(app, connections, address, tls) as url:
            yield f"{url}/metrics"
    finally:
        tally.watch = None
        source.close()


def _response(request: web.Request, registry: CollectorRegistry) -> web.Response:
    """The metrics that the request names, in the format it accepts."""
    encode, kind = choose_encoder(request.headers.get(hdrs.ACCEPT, ""))
    names = request.query.getall("name[]", [])
    wanted = registry.restricted_registry(names) if names else registry
    response = web.Response(body=encode(wanted), headers={hdrs.CONTENT_TYPE: kind})
    response.enable_compression()
    response.force_close()  # the next scrape is seconds away, and connections are few
    return response
