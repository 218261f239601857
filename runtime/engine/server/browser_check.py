"""Refuses requests of web pages of other sites, on a server without tokens.

Without tokens the server listens on loopback. Any web page can make a browser send requests there,
under a host name of its own that resolves to this machine (DNS rebinding). So `Host` must name
loopback, and an `Origin` must be the same host.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from sgc.runtime.engine.server.listen import is_loopback


def problem_of(hosts: Sequence[str], origin: str | None) -> str:
    """Why a request may come from another site's page; "" if it cannot."""
    if len(hosts) != 1 or not is_loopback(_name_of(hosts[0])):
        return "Host must name this machine's loopback, as no token is set"
    if origin is not None and origin.partition("://")[2].lower() != hosts[0].lower():
        return "a page of another origin may not ask, as no token is set"
    return ""


def _name_of(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
