"""Addresses of engines, and the certificates that are trusted for them; see `backend.py`."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from sgc.errors import UsageError


def authorities() -> bytes | None:
    """The content of the file $SGC_TLS_CA."""
    path = os.environ.get("SGC_TLS_CA")
    try:
        return Path(path).read_bytes() if path else None
    except OSError as error:
        raise UsageError(f"cannot read SGC_TLS_CA, {path}: {error.strerror}") from error


def trusting(roots: bytes | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=None if roots is None else roots.decode())
    except (ssl.SSLError, ValueError) as error:
        raise UsageError("the file that SGC_TLS_CA names is not a PEM certificate") from error


def parse_uri(uri: str) -> tuple[str, bool]:
    """gRPC's target, and whether TLS is used."""
    if uri.startswith("unix:") and len(uri) > len("unix:"):
        return uri, False
    scheme, found, target = uri.partition("://")
    host, _, port = target.rpartition(":")
    if not found or scheme not in ("grpc", "grpcs") or not host or not _is_port(port):
        raise UsageError(
            f"cannot use {uri!r} as an engine's address",
            hint="expected grpc://host:port, grpcs://host:port or unix:/path; ports are 1 to 65535",
        )
    return target, scheme == "grpcs"


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 1 <= int(text) <= 65535
