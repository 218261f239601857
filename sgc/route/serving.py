"""Runs `sgc route` until a signal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import aiohttp

from sgc.errors import UsageError, counted
from sgc.route.engines import Engines, HttpFace
from sgc.route.places import read_engines
from sgc.route.proxy import Proxy
from sgc.runtime.engine.http.body import BodyReader
from sgc.runtime.engine.http.connections import Connections
from sgc.runtime.engine.http.site import application, serving
from sgc.runtime.engine.process.descriptors import allow
from sgc.runtime.engine.server.listen import (
    Address,
    Security,
    check_exposure,
    check_free,
    parse_address,
    read_security,
    tls_context,
)
from sgc.runtime.executor.backends.engine.addresses import authorities, trusting

if TYPE_CHECKING:
    import ssl

    from sgc.route.lines import GrpcFace

OPEN_PATHS = frozenset({"/health"})
LOOK_S = 1.0  # how often the source is asked for the engines
CONNECT_S = 5.0
MAX_FILES = 16_384  # connections of clients, and several to each engine


class Source(Protocol):
    """Lists the engines. `look` blocks, and is called again and again; it raises UsageError if the
    list cannot be read."""

    def look(self) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Named:
    """Engines by their addresses, and those in a file, one a line, which is read each time."""

    engines: tuple[str, ...]
    file: Path | None = None

    def look(self) -> list[str]:
        return read_engines(self.engines, self.file)


@dataclass(frozen=True, slots=True)
class RouteConfig:
    """source: of the engines, asked again and again. listen: the address for HTTP; grpc: for gRPC,
    "" for none. token: the router's own, for engines that require one."""

    source: Source
    listen: str
    token_file: str | None
    token: str = field(default="", repr=False)
    grpc: str = ""
    tls_cert: str | None = None
    tls_key: str | None = None


@dataclass(frozen=True, slots=True)
class _Checked:
    config: RouteConfig
    http: Address
    grpc: Address | None
    security: Security
    tls: ssl.SSLContext | None


def route(config: RouteConfig, tell: Callable[[str], None]) -> None:
    """Routes until SIGINT or SIGTERM. Raises UsageError, or EngineUnavailable if none answers."""
    checked = _check(config)
    allow(MAX_FILES)
    asyncio.run(_serve(checked, config.source.look(), tell))


def _check(config: RouteConfig) -> _Checked:
    security = read_security(config.token_file, config.tls_cert, config.tls_key)
    address = parse_address(config.listen)
    if address.path is not None:
        raise UsageError("`sgc route` listens on HOST:PORT for HTTP")
    over_grpc = parse_address(config.grpc) if config.grpc else None
    for each in (address, over_grpc):
        if each is not None:
            check_exposure(each, security)
            check_free(each)
    tls = tls_context(config.tls_cert, config.tls_key)
    return _Checked(config, address, over_grpc, security, tls)


async def _serve(checked: _Checked, names: Sequence[str], tell: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    engines = Engines()
    async with contextlib.AsyncExitStack() as stack:
        http = HttpFace(await stack.enter_async_context(_session()), checked.config.token)
        engines.faces.append(http)
        over_grpc = None if checked.grpc is None else _grpc_face(checked)
        if over_grpc is not None:
            engines.faces.append(over_grpc)
        engines.set(names)
        if over_grpc is not None and not engines.has(over_grpc.kind):
            raise UsageError(
                "--grpc needs engines that are reached over gRPC",
                hint="--engine http://HOST:PORT,grpc://HOST:PORT, or grpc://HOST:PORT alone",
            )
        if over_grpc is None and not engines.has(http.kind):
            raise UsageError(
                "the engines are reached over gRPC only, and the router listens for HTTP only",
                hint="--grpc ADDR listens for gRPC; --engine http://HOST:PORT is reached over HTTP",
            )
        await engines.meet()
        connections = Connections()
        proxy = Proxy(engines, http, BodyReader(connections))
        app = application(proxy.routes(), checked.security, connections, OPEN_PATHS)
        url = await stack.enter_async_context(serving(app, connections, checked.http, checked.tls))
        if over_grpc is not None and checked.grpc is not None:
            from sgc.route.service import serving_grpc

            grpc = serving_grpc(engines, over_grpc, checked.grpc, checked.security)
            url = f"{await stack.enter_async_context(grpc)} and {url}"
        model = next((each.model for each in engines.faces if each.model), "")
        tell(f"{url} routes to {counted(len(names), 'engine')} of {model}")
        watching = asyncio.create_task(_watch(checked.config, engines, tell))
        await stop.wait()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def _session() -> aiohttp.ClientSession:
    """The HTTP session for requests to engines; SGC_TLS_CA names the certificates to trust."""
    roots = authorities()
    connector = aiohttp.TCPConnector(limit=0, ssl=True if roots is None else trusting(roots))
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
    return aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)


def _grpc_face(checked: _Checked) -> GrpcFace:
    from sgc.route.lines import GrpcFace  # imports grpc

    return GrpcFace(checked.config.token)


async def _watch(config: RouteConfig, engines: Engines, tell: Callable[[str], None]) -> None:
    """Updates the engines whenever the source's list changes."""
    seen, wrong = engines.names, ""
    while True:
        await asyncio.sleep(LOOK_S)
        try:
            names = await asyncio.to_thread(config.source.look)
            if names != seen:
                engines.set(names)
                tell(f"routes to {counted(len(names), 'engine')}")
        except UsageError as error:
            if str(error) != wrong:
                tell(f"the engines stay as they are: {error}")
            wrong = str(error)
            continue
        seen, wrong = names, ""
