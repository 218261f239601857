"""Serves the metrics over HTTP, for Prometheus to scrape; `serving.py` starts it.

It is a site of its own, in the server's event loop, with the access rules of gRPC: an address that
others can reach needs a token (`Authorization: Bearer …`); on a server without tokens, `Host` must
name loopback. With a certificate it speaks TLS.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator

from aiohttp import web

from sgc.runtime.engine.http.connections import Connections
from sgc.runtime.engine.http.site import application, serving
from sgc.runtime.engine.metrics.scraping import Scraping
from sgc.runtime.engine.server.listen import Address, Security

MAX_SCRAPES = 4  # at a time; beyond it, an idle connection is closed, or else the new one
CLIENT_TIMEOUT_S = 5.0


@contextlib.asynccontextmanager
async def serving_metrics(
    address: Address, security: Security, tls: ssl.SSLContext | None, scraping: Scraping
) -> AsyncIterator[str]:
    """Serves in the running event loop until the block ends; yields the URL."""

    async def scrape(request: web.Request) -> web.Response:
        response = await scraping.answer(request)
        response.force_close()  # the next scrape is seconds away, and connections are few
        return response

    connections = Connections(CLIENT_TIMEOUT_S, MAX_SCRAPES)
    app = application([web.get("/{path:.*}", scrape)], security, connections)
    async with serving(app, connections, address, tls) as url:
        yield f"{url}/metrics"
