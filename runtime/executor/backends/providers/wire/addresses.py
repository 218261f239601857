"""Whose server an address is: what a key is for, and where a provider's models are known.

An address is the caller's, else the environment's, else the provider's own. Asks nobody.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from sgc.errors import UsageError

OWN = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
COMPATIBLE = ("openai+http://", "openai+https://")
VENDORS = tuple(f"{name}:" for name in OWN)
SCHEMES = (*VENDORS, *COMPATIBLE)


def address_of(provider: str, base_url: str | None) -> str:
    """Where requests go."""
    return base_url or os.environ.get(f"{provider.upper()}_BASE_URL") or OWN[provider]


def is_vendors(provider: str, address: str) -> bool:
    """Whether an address is the provider's own, over TLS, whoever named it."""
    at = urlsplit(address)
    host = at.hostname or ""
    own = (urlsplit(OWN[provider]).hostname or "").removeprefix("api.")
    return at.scheme == "https" and (host == own or host.endswith(f".{own}"))


def is_trusted(provider: str, base_url: str | None) -> bool:
    """Whether a server may have the provider's key: its own, or the one the environment names."""
    if base_url is None:
        return True
    named = os.environ.get(f"{provider.upper()}_BASE_URL", "")
    at = urlsplit(base_url)
    return bool(named and (at.scheme, at.netloc) == urlsplit(named)[:2]) or is_vendors(
        provider, base_url
    )


def checked_address(address: str, wrong: str) -> str:
    """Raises UsageError, saying what is `wrong`, for what is no server's URL or has a password."""
    try:
        parts = urlsplit(address)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (TypeError, ValueError, AttributeError):  # no text, no port, an open bracket
        is_whole = False
    if not is_whole or parts.query or parts.fragment:
        raise UsageError(wrong, hint="such as http://127.0.0.1:8000/v1")
    if parts.username or parts.password:
        raise UsageError("an address must hold no password", hint="give a key in SGC_TOKEN")
    return address
