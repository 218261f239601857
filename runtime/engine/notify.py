"""Tells systemd of a server's state (sd_notify), if systemd has given a socket for it."""

from __future__ import annotations

import contextlib
import os
import socket

READY, STOPPING = "READY=1", "STOPPING=1"


def notify(state: str) -> None:
    """Does nothing outside of a systemd unit of Type=notify."""
    path = os.environ.get("NOTIFY_SOCKET", "")
    if not path.startswith(("/", "@")):
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        sending.settimeout(1.0)
        sending.sendto(state.encode(), address)
