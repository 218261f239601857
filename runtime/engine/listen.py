"""Where the server listens, and who may connect: addresses, tokens, TLS.

Loopback and Unix sockets need no token; any other address is refused without one.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import socket
import stat
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from sgc.errors import UsageError

OPEN_PREFIX = "/grpc.health.v1.Health/"  # probes carry no token
MAX_TOKEN_CHARS = 4096


@dataclass(frozen=True, slots=True)
class Security:
    """token: what clients must present; certificate and key: PEM, for TLS."""

    token: str | None = None
    certificate: bytes | None = None
    key: bytes | None = None


@dataclass(frozen=True, slots=True)
class Address:
    """host and port (0: any free one), or the path of a Unix socket."""

    host: str = ""
    port: int = 0
    path: Path | None = None


def parse_address(text: str) -> Address:
    """`host:port`, `[v6]:port` or `unix:/path`; raises `UsageError`."""
    if text.startswith("unix:"):
        path = Path(text.removeprefix("unix:"))
        if not path.name or len(os.fsencode(path)) > 100:
            raise UsageError(f"{text!r}: a Unix socket's path must have 1 to 100 bytes")
        return Address(path=path)
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"cannot listen on {text!r}: expected host:port or unix:/path")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_security(token_file: str | None, cert_file: str | None, key_file: str | None) -> Security:
    """The token (of the file, else $SGC_TOKEN) and the TLS files; raises `UsageError`."""
    token = _read(token_file).decode().strip() if token_file else os.environ.get("SGC_TOKEN", "")
    if token_file and not token:
        raise UsageError(f"the token file {token_file} is empty")
    if len(token) > MAX_TOKEN_CHARS or not (token.isascii() and token.isprintable()):
        raise UsageError(f"a token must be up to {MAX_TOKEN_CHARS} printable ASCII characters")
    if bool(cert_file) != bool(key_file):
        raise UsageError("TLS needs both --tls-cert and --tls-key")
    if not cert_file or not key_file:
        return Security(token or None)
    return Security(token or None, _read(cert_file), _read(key_file))


def check_exposure(address: Address, security: Security) -> None:
    """Refuses an address that others can reach without a token."""
    if address.path is None and not is_loopback(address.host) and security.token is None:
        raise UsageError(
            f"{address.host} can be reached from outside, and no token is set",
            hint="set --token-file or SGC_TOKEN, or listen on 127.0.0.1 or unix:/path",
        )


def bind(server: grpc.aio.Server, address: Address, security: Security) -> str:
    """Binds the server; returns the address clients use. Raises `UsageError` if it cannot."""
    if address.path is not None:
        target = f"unix:{_prepare_socket(address.path)}"
    else:
        host = f"[{address.host}]" if ":" in address.host else address.host
        target = f"{host}:{address.port}"
    try:
        if security.certificate is not None and security.key is not None:
            pair = (security.key, security.certificate)
            port = server.add_secure_port(target, grpc.ssl_server_credentials([pair]))
        else:
            port = server.add_insecure_port(target)
    except RuntimeError as error:
        raise UsageError(f"cannot listen on {target}: {error}") from error
    if address.path is not None:
        address.path.chmod(0o600)
        return target
    return f"{target.rpartition(':')[0]}:{port}"


def _prepare_socket(path: Path) -> Path:
    """Makes the socket's folder private and removes a socket left by a server that died."""
    path = path.absolute()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = path.parent.stat()
        if mode.st_uid != os.getuid() or mode.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageError(
                f"the socket's folder {path.parent} is open to other users",
                hint=f"chmod 700 {path.parent}, or choose a folder of your own",
            )
        if path.is_socket():
            _refuse_if_alive(path)
            path.unlink()
        elif path.exists():
            raise UsageError(f"{path} exists and is no socket")
    except OSError as error:
        raise UsageError(f"cannot listen on {path}: {error}") from error
    return path


def _refuse_if_alive(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return
    raise UsageError(f"another server listens on {path}")


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error}") from error


class TokenCheck(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Refuses calls without the right `authorization: Bearer …`."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    async def intercept_service(
        self,
        continuation: Callable[[Any], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        if handler_call_details.method.startswith(OPEN_PREFIX):
            return await continuation(handler_call_details)
        for key, value in handler_call_details.invocation_metadata:
            data = value.encode() if isinstance(value, str) else value
            if key == "authorization" and hmac.compare_digest(data, self._expected):
                return await continuation(handler_call_details)
        return grpc.stream_stream_rpc_method_handler(_refuse)


async def _refuse(requests: Any, context: grpc.aio.ServicerContext) -> None:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, "a valid token is required")
