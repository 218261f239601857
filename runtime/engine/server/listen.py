"""Where the server listens, and who may connect: addresses, tokens, TLS.

Loopback and Unix sockets need no token; any other address is refused without one. A Unix socket is
made with mode 0600, so that only its owner can connect. Its folder must exist, and no other user
may be able to replace the socket: the folder is this user's or root's, and group and others cannot
write to it, or it has the sticky bit, like /tmp.

`check_free` reports problems early; `bind`, which lets clients connect, is called when the model is
loaded, and only then gRPC is imported. Tokens (`tokens.py`) are checked in `token_check.py` and
`http/guard.py`.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import socket
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sgc.errors import UsageError
from sgc.runtime.engine.server.accounts.token_files import MAX_FILE_BYTES, read_tokens
from sgc.runtime.engine.server.accounts.tokens import Tokens, check_token

if TYPE_CHECKING:
    import ssl

    import grpc.aio

NO_TOKENS = Tokens()


@dataclass(frozen=True, slots=True)
class Security:
    """tokens: clients must present one of them, if any; certificate, key: PEM, for TLS."""

    tokens: Tokens = NO_TOKENS
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
    if not host or not port.isdecimal():
        raise UsageError(f"cannot listen on {text!r}: expected host:port or unix:/path")
    if len(port) > 5 or int(port) > 65535:
        raise UsageError(f"cannot listen on {text!r}: a port is from 0 to 65535")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_security(token_file: str | None, cert_file: str | None, key_file: str | None) -> Security:
    """The tokens (of the file, else $SGC_TOKEN) and the TLS files; raises `UsageError`."""
    tokens = _read_tokens(token_file)
    if bool(cert_file) != bool(key_file):
        raise UsageError("TLS needs both --tls-cert and --tls-key")
    if not cert_file or not key_file:
        return Security(tokens)
    return Security(tokens, *_read_tls(cert_file, key_file))


def _read_tokens(token_file: str | None) -> Tokens:
    if token_file:
        return read_tokens(_read(token_file, MAX_FILE_BYTES + 1), token_file)
    token = os.environ.get("SGC_TOKEN", "")
    check_token(token, "SGC_TOKEN")
    return Tokens([token]) if token else NO_TOKENS


def _read_tls(cert_file: str, key_file: str) -> tuple[bytes, bytes]:
    import ssl

    certificate, key = _read(cert_file), _read(key_file)
    if b"-----BEGIN CERTIFICATE-----" not in certificate:
        raise UsageError(f"{cert_file} is not a PEM certificate")
    if b"PRIVATE KEY-----" not in key:
        raise UsageError(f"{key_file} is not a PEM private key")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert_file, key_file, password=lambda: b"")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise UsageError(f"{key_file} is not the key of {cert_file}") from error
        raise UsageError(
            f"{cert_file} or {key_file} is not a usable PEM file",
            hint="the key must not be encrypted",
        ) from error
    return certificate, key


def tls_context(cert_file: str | None, key_file: str | None) -> ssl.SSLContext | None:
    """Of a server whose files were read before (`read_security`); None without them."""
    if not cert_file or not key_file:
        return None
    import ssl

    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found.load_cert_chain(cert_file, key_file)
    return found


def check_exposure(address: Address, security: Security) -> None:
    """Refuses an address that others can reach without a token."""
    if address.path is None and not is_loopback(address.host) and not security.tokens:
        raise UsageError(
            f"{address.host} can be reached from outside, and no token is set",
            hint="set --token-file or SGC_TOKEN, or listen on 127.0.0.1 or unix:/path",
        )


def check_free(address: Address) -> None:
    """Raises `UsageError` if the address cannot be bound; leaves nothing behind."""
    if address.path is not None:
        _check_path(address.path.absolute())
        return
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, where = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gRPC does
            probe.bind(where)
    except socket.gaierror as error:
        raise UsageError(f"cannot listen on {address.host!r}: no such host") from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"port {address.port} on {address.host} is in use") from error
        raise UsageError(
            f"cannot listen on port {address.port} of {address.host}: {error.strerror}"
        ) from error


def bind(server: grpc.aio.Server, address: Address, security: Security) -> str:
    """Binds the server; returns the address clients use. Raises `UsageError` if it cannot."""
    if address.path is not None:
        target = f"unix:{_make_room(address.path.absolute())}"
    else:
        host = f"[{address.host}]" if ":" in address.host else address.host
        target = f"{host}:{address.port}"
    try:
        with _private_files():
            port = _add_port(server, target, security)
    except RuntimeError as error:
        check_free(address)  # raises an error that gives the reason
        raise UsageError(f"cannot listen on {target}") from error
    if address.path is not None:
        return target
    return f"{target.rpartition(':')[0]}:{port}"


def _add_port(server: grpc.aio.Server, target: str, security: Security) -> int:
    if security.certificate is None or security.key is None:
        return int(server.add_insecure_port(target))
    import grpc

    pair = (security.key, security.certificate)
    return int(server.add_secure_port(target, grpc.ssl_server_credentials([pair])))


@contextlib.contextmanager
def _private_files() -> Iterator[None]:
    """Files made within this block are accessible only to their owner, from the start."""
    before = os.umask(0o177)
    try:
        yield
    finally:
        os.umask(before)


def _make_room(path: Path) -> Path:
    """Removes a socket left by a server that died."""
    _check_path(path)
    path.unlink(missing_ok=True)
    return path


def _check_path(path: Path) -> None:
    try:
        _check_folder(path.parent)
        if path.is_socket():
            _refuse_if_alive(path)
        elif path.exists() or path.is_symlink():
            raise UsageError(f"{path} exists and is not a socket")
    except OSError as error:
        raise UsageError(f"cannot listen on {path}: {error.strerror}") from error


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"cannot make a socket in {folder}: no such folder")
    status = folder.stat()
    others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    is_ours = status.st_uid in (os.getuid(), 0)
    if not is_ours or (others_write and not status.st_mode & stat.S_ISVTX):
        raise UsageError(
            f"other users can change the socket's folder {folder}",
            hint=f"chmod go-w {folder}, or choose a folder of your own",
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"cannot make a socket in {folder}: the folder cannot be written to")


def _refuse_if_alive(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return
        except (BlockingIOError, TimeoutError):
            pass  # it listens but is slow to accept
    raise UsageError(f"another server listens on {path}")


def _read(path: str, n_bytes: int = -1) -> bytes:
    """The file's content, up to `n_bytes`."""
    try:
        with Path(path).open("rb") as file:
            return file.read(n_bytes)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
