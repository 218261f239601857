"""Colours on a terminal: on where a stream is one, off by NO_COLOR, on everywhere by FORCE_COLOR.

Text is always styled; click strips the styles where they are not wanted.
"""

from __future__ import annotations

import os
from typing import Any

import click


def wanted() -> bool | None:
    """Whether the environment asks for colours; None: the stream decides. Ignores empty values."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "") not in ("", "0"):
        return True
    return False if os.environ.get("TERM") == "dumb" else None


def are_shown_on(stream: Any) -> bool:
    told = wanted()
    return bool(stream.isatty()) if told is None else told


def generated(text: str) -> str:
    return click.style(text, fg="green", bold=True)


def role(text: str) -> str:
    return click.style(text, fg="cyan", bold=True)


def faint(text: str) -> str:
    return click.style(text, dim=True)


def good(text: str) -> str:
    return click.style(text, fg="green")


def bad(text: str) -> str:
    return click.style(text, fg="red", bold=True)


def warning(text: str) -> str:
    return click.style(text, fg="yellow")
