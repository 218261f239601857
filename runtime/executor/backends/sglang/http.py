"""An HTTP client for one server: pooled connections, JSON, event streams, retries, typed errors.

`sglang/wire.py` knows the JSON's meaning, `sglang/backend.py` the requests. No other module of the
executor imports aiohttp. An object belongs to the event loop of its first use.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import aiohttp
import yarl

from sgc.errors import BackendError, EngineUnavailable, Overloaded, UsageError
from sgc.runtime.executor.backends.retrying import Retries, retrying
from sgc.runtime.executor.backends.sglang.stream import Events, Shown
from sgc.runtime.executor.backends.sglang.wire import Json, error_of, message_of, parsed

CONNECT_TIMEOUT_S = 5.0
# Shorter than servers keep an idle connection (SGLang: 5 s), so that no closed one is used.
KEEP_ALIVE_S = 4.0
MAX_REPLY_BYTES = 64 * 1024 * 1024
T = TypeVar("T")
Read = Callable[[aiohttp.ClientResponse], Awaitable[T]]


class ConnectionDropped(EngineUnavailable):
    """The server closed the connection before its reply had ended."""


class NotFound(BackendError):
    """The server has nothing at that path."""


RETRIES = Retries((Overloaded, ConnectionDropped), max_tries=6, first_wait_s=0.1, least=0.5)


class HttpClient:
    """Sends requests to one server, at most `max_in_flight` at a time; others wait in order."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        timeout_s: float,
        max_in_flight: int,
        verify: str | None = None,
    ) -> None:
        self.base = _parse_url(base_url)
        self._tls = None if verify is None else _trusting(verify)
        if api_key and not (api_key.isascii() and api_key.isprintable()):
            raise UsageError("the server's api_key must be printable ASCII characters")
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._max_in_flight = max(1, max_in_flight)
        self._urls: dict[str, yarl.URL] = {}
        self._session: aiohttp.ClientSession | None = None
        self._room = asyncio.Semaphore(self._max_in_flight)

    async def get(self, path: str) -> Any:
        """The reply's JSON."""
        return parsed(await self._exchange("GET", path, None, _read_body))

    async def post(self, path: str, body: bytes) -> bytes:
        """The reply's body."""
        return await self._exchange("POST", path, body, _read_body)

    async def stream(self, path: str, body: bytes, shown: Shown) -> Json:
        """The last event of the reply; `shown` gets the growing text, but not the final one.

        The caller passes the final text to `shown`.
        """

        async def read(response: aiohttp.ClientResponse) -> Json:
            return await self._read_events(response, shown)

        return await self._exchange("POST", path, body, read, shown)

    async def close(self) -> None:
        """Closes the connections; unfinished calls fail."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _exchange(
        self, method: str, path: str, body: bytes | None, read: Read[T], shown: Shown | None = None
    ) -> T:
        """One reply. Unless part of it was shown, it retries a few times if the server has no room,
        and once if it drops the connection."""
        session = self._open_session()
        n_dropped = 0

        async def once() -> T:
            async with self._room:
                return await self._once(session, method, path, body, read)

        def goes_on(error: BackendError, wait_s: float) -> bool:
            nonlocal n_dropped
            n_dropped += isinstance(error, ConnectionDropped)
            return n_dropped < 2 and not session.closed and (shown is None or not shown.n_shown)

        return await retrying(RETRIES, once, goes_on)

    async def _once(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        body: bytes | None,
        read: Read[T],
    ) -> T:
        if session.closed:
            raise EngineUnavailable(f"the connection to the server at {self.base} was closed")
        url = self._urls.get(path) or self._urls.setdefault(path, self.base.joinpath(path))
        try:
            async with session.request(method, url, data=body, allow_redirects=False) as response:
                if response.status == 200:
                    return await read(response)
                raise _status_error(response.status, await _read_body(response), str(url))
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            raise self._error_of(error) from error

    async def _read_events(self, response: aiohttp.ClientResponse, shown: Shown) -> Json:
        events = Events(shown, MAX_REPLY_BYTES)
        try:
            async for chunk in response.content.iter_any():
                events.feed(chunk)
                if events.is_done:
                    break
        except (aiohttp.ClientPayloadError, aiohttp.ClientOSError) as error:
            if events.result() is None:
                raise self._error_of(error) from error
        found = events.result()
        if found is None:
            raise ConnectionDropped(f"the stream from the server at {self.base} ended too early")
        if events.is_done:
            await _finish(response)
        return found

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._max_in_flight,
                    keepalive_timeout=KEEP_ALIVE_S,
                    ssl=True if self._tls is None else self._tls,
                ),
                timeout=aiohttp.ClientTimeout(
                    total=self._timeout_s, connect=None, sock_connect=CONNECT_TIMEOUT_S
                ),
                headers=self._headers(),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session

    def _headers(self) -> dict[str, str]:
        headers = {
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "sgc",
        }
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        return headers

    def _error_of(self, error: Exception) -> BackendError:
        """The error for a failure of the connection."""
        if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
            why = str(error) or type(error).__name__
            return EngineUnavailable(
                f"no server at {self.base} ({why})",
                hint="start one with `python -m sglang.launch_server`, or check the address",
            )
        if isinstance(error, TimeoutError):
            return EngineUnavailable(
                f"the server at {self.base} did not end its reply within {self._timeout_s:g} s"
            )
        if isinstance(error, aiohttp.ClientResponseError):
            return BackendError(f"what answers at {self.base} does not speak HTTP: {error}")
        why = str(error) or type(error).__name__
        return ConnectionDropped(f"the server at {self.base} closed the connection ({why})")


def _status_error(status: int, data: bytes, url: str) -> BackendError:
    """The error for a reply with an error status."""
    try:
        body: Any = json.loads(data)
    except (ValueError, RecursionError):
        body = data.decode(errors="replace")
    what = f"the server at {url} answered {status}"
    if status in (429, 503):
        return Overloaded(f"{what}: {message_of(body)}")
    if status == 404:
        return NotFound(what, hint="is it an SGLang server's address?")
    if status in (401, 403):
        return BackendError(f"{what}: {message_of(body)}", hint="pass the server's api_key")
    if status in range(300, 400):
        return BackendError(
            f"{what}, a redirect, which is not followed", hint="use its own address"
        )
    return error_of(body, what)


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    """The whole body; raises BackendError if it is larger than MAX_REPLY_BYTES."""
    size = response.content_length
    if size is not None and size <= MAX_REPLY_BYTES:
        return await response.read()
    body = bytearray()
    if size is None:
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > MAX_REPLY_BYTES:
                break
        else:
            return bytes(body)
    raise BackendError(f"the server sent a reply of over {MAX_REPLY_BYTES} bytes")


async def _finish(response: aiohttp.ClientResponse) -> None:
    """Waits briefly for the end of a finished stream, so that its connection can be reused;
    otherwise it is closed."""
    if response.content.at_eof():
        return
    try:
        async with asyncio.timeout(0.1):
            await response.content.readany()
    except (TimeoutError, aiohttp.ClientError):
        return


def _trusting(path: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ValueError) as error:  # includes ssl.SSLError, for an invalid certificate
        raise UsageError(
            f"cannot read certificates from verify={path!r}: {error}", hint="name a PEM file"
        ) from error


def _parse_url(given: str) -> yarl.URL:
    try:
        url = yarl.URL(given.rstrip("/"))
        is_ok = url.scheme in ("http", "https") and bool(url.host)
        is_plain = not (url.query_string or url.fragment or url.user or url.password)
        if is_ok and is_plain and url.port:
            return url
    except (ValueError, TypeError) as error:
        raise UsageError(f"cannot use {given!r} as a server's address: {error}") from error
    raise UsageError(
        f"cannot use {given!r} as a server's address",
        hint="expected http://host:port or https://host:port; ports are 1 to 65535",
    )
