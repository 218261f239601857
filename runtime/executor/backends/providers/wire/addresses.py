"""Decides whose server an address is, and so which servers may get a key.

An address is the caller's, else the environment's, else the provider's own. It makes no requests.
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
    """The address that requests go to."""
    return base_url or os.environ.get(f"{provider.upper()}_BASE_URL") or OWN[provider]


def is_vendors(provider: str, address: str) -> bool:
    """Whether an address is the provider's own, over TLS, wherever it comes from."""
    at = urlsplit(address)
    host = at.hostname or ""
    own = (urlsplit(OWN[provider]).hostname or "").removeprefix("api.")
    return at.scheme == "https" and (host == own or host.endswith(f".{own}"))


def is_trusted(provider: str, base_url: str | None) -> bool:
    """Whether a server may get the provider's key: the provider's own, or the environment's."""
    if base_url is None:
        return True
    named = os.environ.get(f"{provider.upper()}_BASE_URL", "")
    at = urlsplit(base_url)
    return bool(named and (at.scheme, at.netloc) == urlsplit(named)[:2]) or is_vendors(
        provider, base_url
    )


def checked_address(address: str, wrong: str) -> str:
    """The address; raises UsageError with the message `wrong` if it is not a server's URL."""
    try:
        parts = urlsplit(address)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (TypeError, ValueError, AttributeError):  # not a text, a bad port, an open bracket
        is_whole = False
    if not is_whole or parts.query or parts.fragment:
        raise UsageError(wrong, hint="such as http://127.0.0.1:8000/v1")
    if parts.username or parts.password:
        raise UsageError("an address must hold no password", hint="give a key in SGC_TOKEN")
    return address
