"""The answer to a scrape, on whichever port it comes: one registry for all."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence

from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.metrics.metrics import (
    AccountCollector,
    RequestMetrics,
    StatsCollector,
    StatsSource,
)
from sgc.runtime.engine.server.accounts.quotas import Account
from sgc.runtime.engine.server.tally import Tally


class Scraping:
    """Answers scrapes with the metrics of one engine."""

    def __init__(self, registry: CollectorRegistry, source: StatsSource) -> None:
        self._registry, self._source = registry, source

    async def answer(self, request: web.Request) -> web.Response:
        """The metrics that the request names, in the format it accepts."""
        await self._source.refresh()
        encode, kind = choose_encoder(request.headers.get(hdrs.ACCEPT, ""))
        names = request.query.getall("name[]", [])
        wanted = self._registry.restricted_registry(names) if names else self._registry
        response = web.Response(body=encode(wanted), headers={hdrs.CONTENT_TYPE: kind})
        response.enable_compression()
        return response


@contextlib.contextmanager
def scraping(
    ask: Callable[[], Awaitable[pb.Stats]],
    info: pb.Info,
    tally: Tally,
    accounts: Callable[[], Sequence[Account]] = tuple,
) -> Iterator[Scraping]:
    """Watches the engine within the block, in a running event loop."""
    registry = CollectorRegistry()
    tally.watch = RequestMetrics(registry).observe
    source = StatsSource(ask)
    registry.register(StatsCollector(source.known, info))
    registry.register(AccountCollector(accounts))
    try:
        source.ask()  # so that a scrape during a long first step has statistics
        yield Scraping(registry, source)
    finally:
        tally.watch = None
        source.close()
