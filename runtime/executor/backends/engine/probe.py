"""Finds out why a connection to an engine fails, which gRPC tells only in its log.

Called by `engine/backend.py` after an attempt failed; connects once or twice more to find out.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator

PROBE_TIMEOUT_S = 1.0
# The first bytes of a gRPC client: HTTP/2's preface and empty settings.
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def reason_unreachable(target: str, tls: ssl.SSLContext | None) -> str:
    """Why another try would not help; "" if it might. tls: None without TLS."""
    try:
        async with _connected(target) as (reader, writer):
            writer.write(GREETING)
            answer = b"?" if tls else await _first_bytes(reader)
        if tls is not None:
            return await _reason_without_tls(target, tls)
        if answer == b"" and await _speaks_tls(target):
            return "it speaks TLS: use grpcs://"
        if answer.startswith(b"HTTP/1"):
            return "what answers there is an HTTP server, no engine"
    except TimeoutError:
        return ""
    except ConnectionRefusedError:
        return "connection refused"
    except FileNotFoundError:
        return "no such socket"
    except socket.gaierror:
        return "no such host"
    except ConnectionError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    return ""


async def _reason_without_tls(target: str, tls: ssl.SSLContext) -> str:
    try:
        async with _connected(target, tls):
            return ""
    except ssl.SSLCertVerificationError as error:
        return f"its certificate is not trusted: {error.verify_message}; SGC_TLS_CA names a CA"
    except (ssl.SSLError, ConnectionError):
        return "it does not speak TLS: use grpc://"


async def _speaks_tls(target: str) -> bool:
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    try:
        async with _connected(target, anyone):
            return True
    except (ssl.SSLError, ConnectionError):
        return False


@contextlib.asynccontextmanager
async def _connected(target: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[Pair]:
    reader, writer = await asyncio.wait_for(_open(target, tls), PROBE_TIMEOUT_S)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _open(target: str, tls: ssl.SSLContext | None) -> Pair:
    if target.startswith("unix:"):
        path = target.removeprefix("unix:").removeprefix("//")
        return await asyncio.open_unix_connection(path)
    host, _, port = target.rpartition(":")
    return await asyncio.open_connection(
        host.removeprefix("[").removesuffix("]"), int(port), ssl=tls
    )


async def _first_bytes(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.read(16), PROBE_TIMEOUT_S)
    except ConnectionResetError:
        return b""
