"""The HTTP client of the providers' SDKs: no redirects, bounded replies, few connections."""

from __future__ import annotations

import os
import ssl
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import httpx2

from sgc.errors import UsageError
from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply, WrongServer

MAX_REPLY_BYTES = 64 * 1024 * 1024
# Of a batch's results, which are read line by line.
MAX_RESULTS_BYTES = 16 * 1024**3
_RESULTS = ("/content", "/results")
CONNECT_TIMEOUT_S = 10.0


def client_settings(max_in_flight: int, timeout_s: float) -> dict[str, Any]:
    """The settings for the SDKs' `DefaultAsyncHttpxClient`."""
    return {
        "follow_redirects": False,  # so that prompts and keys go nowhere else
        "limits": httpx2.Limits(
            max_connections=max_in_flight, max_keepalive_connections=max_in_flight
        ),
        "timeout": httpx2.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
        # A small compressed reply may be large when unpacked.
        "headers": {"Accept-Encoding": "identity"},
        "event_hooks": {"response": [_bound]},
        "verify": _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
    }


@lru_cache(maxsize=4)
def _trusted(file: str | None, folder: str | None) -> ssl.SSLContext:
    """The certificates that clients trust, from httpx's own variables; reading them takes 20 ms."""
    return httpx2.create_ssl_context()


@contextmanager
def constructing(package: str) -> Iterator[None]:
    """Raises UsageError if an SDK's client refuses the caller's settings."""
    try:
        yield
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"the package {package} does not take what is given: {error}") from error


def where(url: httpx2.URL) -> str:
    """A server's address for error messages: only scheme, host and port."""
    return f"{url.scheme}://{url.netloc.decode()}"


async def _bound(response: httpx2.Response) -> None:
    """Bounds a reply; refuses a compressed one, which may unpack to more than memory holds."""
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        if not response.is_error:
            raise WrongServer(
                f"the server compresses its replies ({encoding[:40]!r}), which it was asked not to",
                hint="an http_client= of your own may take them",
            )
        # The status tells enough.
        await stream.aclose()
        stream = httpx2.ByteStream(b"")
        del response.headers["content-encoding"]
    is_long = response.request.url.path.endswith(_RESULTS)
    response.stream = _Bounded(stream, MAX_RESULTS_BYTES if is_long else MAX_REPLY_BYTES)


class _Bounded(httpx2.AsyncByteStream):
    """A reply's bytes, as many as it may have, without a byte order mark."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int) -> None:
        self._inner = inner
        self._most = self._left = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        begin: bytes | None = b""
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                raise MalformedReply(f"the reply has over {self._most:,} bytes")
            if begin is not None:
                begin += chunk
                if BOM_UTF8.startswith(begin):
                    continue  # it may still become a whole mark
                # With a mark before it, the SDKs do not see a stream's first event.
                chunk, begin = begin.removeprefix(BOM_UTF8), None
            yield chunk
        if begin:
            yield begin.removeprefix(BOM_UTF8)

    async def aclose(self) -> None:
        await self._inner.aclose()
