"""Runs `sgc route` until a signal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import aiohttp

from sgc.errors import UsageError
from sgc.route.engines import Engines, read_engines
from sgc.route.proxy import Proxy
from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.connections import Connections
from sgc.runtime.engine.http.site import application, serving
from sgc.runtime.engine.server.listen import (
    Address,
    Security,
    check_exposure,
    parse_address,
    read_security,
)

OPEN_PATHS = frozenset({"/health"})
LOOK_S = 1.0  # how often it is asked which engines there are
CONNECT_S = 5.0


class Source(Protocol):
    """Says which engines there are. `look` blocks, and may be called again and again; it raises
    UsageError for what cannot be read."""

    def look(self) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Named:
    """Engines by their URLs, and those of a file, one a line, which is read each time."""

    engines: tuple[str, ...]
    file: Path | None = None

    def look(self) -> list[str]:
        return read_engines(self.engines, self.file)


@dataclass(frozen=True, slots=True)
class RouteConfig:
    """source: of the engines, which is asked again and again. token: the router's own, for engines
    that want one."""

    source: Source
    listen: str
    token_file: str | None
    token: str = field(default="", repr=False)


def route(config: RouteConfig, tell: Callable[[str], None]) -> None:
    """Routes until SIGINT or SIGTERM. Raises UsageError, or EngineUnavailable if none answers."""
    address, security = parse_address(config.listen), read_security(config.token_file, None, None)
    if address.path is not None:
        raise UsageError("`sgc route` listens on HOST:PORT")
    check_exposure(address, security)
    urls = config.source.look()
    asyncio.run(_serve(config, urls, address, security, tell))


async def _serve(
    config: RouteConfig,
    urls: Sequence[str],
    address: Address,
    security: Security,
    tell: Callable[[str], None],
) -> None:
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, auto_decompress=False
    ) as session:
        engines, connections = Engines(session, config.token), Connections()
        engines.set(urls)
        await engines.meet()
        proxy = Proxy(engines, BodyReader(connections))
        app = application(proxy.routes(), security, connections, OPEN_PATHS)
        async with serving(app, connections, address, None) as url:
            tell(f"{url} routes to {len(urls)} engines of {engines.model}")
            watching = asyncio.create_task(_watch(config, engines, tell))
            await stop.wait()
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _watch(config: RouteConfig, engines: Engines, tell: Callable[[str], None]) -> None:
    """Takes the engines that the source names from now on, whenever they are others."""
    seen, wrong = engines.urls, ""
    while True:
        await asyncio.sleep(LOOK_S)
        try:
            urls = await asyncio.to_thread(config.source.look)
        except UsageError as error:
            if str(error) != wrong:
                tell(f"the engines stay as they are: {error}")
            wrong = str(error)
            continue
        wrong = ""
        if urls != seen:
            engines.set(urls)
            seen = urls
            tell(f"routes to {len(urls)} engines")
