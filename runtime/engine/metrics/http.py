"""Serves the metrics over HTTP, for Prometheus to scrape; made by `serve.py`.

The event loop accepts a connection; a thread of a few, with a time limit, answers it. Whom it
lets in is as for gRPC: an address that others can reach needs a token, and where there is one
it is asked for (`Authorization: Bearer …`); else `Host` must name loopback. With a certificate it
speaks TLS.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import socketserver
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app

from sgc.errors import UsageError
from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.metrics.metrics import RequestMetrics, StatsCollector, StatsSource
from sgc.runtime.engine.server.browser_check import problem_of
from sgc.runtime.engine.server.listen import (
    Address,
    Security,
    check_exposure,
    check_free,
    parse_address,
)
from sgc.runtime.engine.server.tally import Tally
from sgc.runtime.engine.server.tokens import Tokens

MAX_SCRAPES = 4  # at a time; more are hung up on
CLIENT_TIMEOUT_S = 5.0


def metrics_address(text: str, security: Security) -> Address:
    """`[host:]port`, loopback if no host is named; raises `UsageError` if it cannot be used."""
    address = parse_address(f"127.0.0.1:{text}" if text.isdigit() else text)
    if address.path is not None:
        raise UsageError("--metrics is served over HTTP: expected [host:]port or off")
    check_exposure(address, security)
    check_free(address)
    return address


@contextlib.contextmanager
def serving_metrics(
    address: Address,
    security: Security,
    tls: ssl.SSLContext | None,
    ask: Callable[[], Awaitable[pb.Stats]],
    info: pb.Info,
    tally: Tally,
) -> Iterator[str]:
    """Serves in the running event loop until the end of the block; gives the URL."""
    loop = asyncio.get_running_loop()
    registry = CollectorRegistry()
    tally.watch = RequestMetrics(registry).observe
    source = StatsSource(ask, loop)
    source.ask()  # so that even a scrape in a long first step knows something
    registry.register(StatsCollector(source, info))
    server = _Server(address, _guarded(make_wsgi_app(registry), security.tokens), tls)
    loop.add_reader(server.fileno(), server.handle_request)
    try:
        yield server.url
    finally:
        tally.watch = None
        loop.remove_reader(server.fileno())
        server.server_close()


class _Handler(WSGIRequestHandler):
    timeout = CLIENT_TIMEOUT_S

    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes come all the time."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    timeout = 0  # `handle_request` is called when someone has come
    request_queue_size = 16

    def __init__(self, address: Address, app: WSGIApplication, tls: ssl.SSLContext | None) -> None:
        if ":" in address.host:
            self.address_family = socket.AF_INET6
        self._free = threading.BoundedSemaphore(MAX_SCRAPES)
        super().__init__((address.host, address.port), _Handler)
        self.set_app(app)
        host = f"[{address.host}]" if ":" in address.host else address.host
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://{host}:{self.server_address[1]}/metrics"
        if tls is not None:
            # The handshake is for the thread that answers.
            self.socket = tls.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def server_bind(self) -> None:
        """As WSGIServer's, without asking the name service for this machine's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up or speaks no HTTP is no matter of ours."""


def _guarded(app: WSGIApplication, tokens: Tokens) -> WSGIApplication:
    """The application, for those who present a token; without one, for no other site's page."""

    def guarded(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        headers = [("Content-Type", "text/plain")]
        if not tokens:
            hosts = [str(environ["HTTP_HOST"])] if "HTTP_HOST" in environ else []
            problem = problem_of(hosts, environ.get("HTTP_ORIGIN"))
            if not problem:
                return app(environ, start_response)
            start_response("403 Forbidden", headers)
            return [f"{problem}\n".encode()]
        given = str(environ.get("HTTP_AUTHORIZATION", "")).encode("utf-8", "replace")
        if tokens.find(given) is not None:
            return app(environ, start_response)
        start_response("401 Unauthorized", [("WWW-Authenticate", "Bearer"), *headers])
        return [b"a valid token is required: Authorization: Bearer ...\n"]

    return guarded
