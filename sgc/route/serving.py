"""Runs `sgc route` until a signal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

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
LOOK_S = 1.0  # how often the file of engines is looked at
CONNECT_S = 5.0


@dataclass(frozen=True, slots=True)
class RouteConfig:
    """engines: URLs; file: more of them, one a line, read again when it changes."""

    engines: tuple[str, ...]
    file: Path | None
    listen: str
    token_file: str | None


def route(config: RouteConfig, tell: Callable[[str], None]) -> None:
    """Routes until SIGINT or SIGTERM. Raises UsageError, or EngineUnavailable if none answers."""
    urls = read_engines(config.engines, config.file)
    address, security = parse_address(config.listen), read_security(config.token_file, None, None)
    if address.path is not None:
        raise UsageError("`sgc route` listens on HOST:PORT")
    check_exposure(address, security)
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
        engines, connections = Engines(session), Connections()
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
    """Takes the engines that the file names from now on, whenever it has changed."""
    seen, wrong = engines.urls, ""
    while config.file is not None:
        await asyncio.sleep(LOOK_S)
        try:
            urls = await asyncio.to_thread(read_engines, config.engines, config.file)
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
