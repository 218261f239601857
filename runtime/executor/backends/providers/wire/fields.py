"""Writes and reads fields of providers' JSON objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply

MAX_COUNT = 100_000_000  # of one request's tokens; ten times the longest contexts


def put(body: dict[str, Any], path: str, value: Any) -> None:
    """Sets a field; dots in the path separate nested objects."""
    *outer, name = path.split(".")
    for each in outer:
        body = body.setdefault(each, {})
    body[name] = value


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def count(fields: Mapping[str, Any], name: str) -> int:
    """A count of a reply, 0 if it has none; raises MalformedReply for what no reply can count."""
    value = fields.get(name)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_COUNT:
        raise MalformedReply(f"the server counts {name} as {str(value)[:80]}")
    return value
