"""Writes and reads fields of providers' JSON objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sgc.runtime.executor.backends.providers.wire.errors import MalformedReply


def put(body: dict[str, Any], path: str, value: Any) -> None:
    """Sets a field; dots in the path separate nested objects."""
    *outer, name = path.split(".")
    for each in outer:
        body = body.setdefault(each, {})
    body[name] = value


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def count(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    if value is None:
        return 0
    if not isinstance(value, int) or value < 0:
        raise MalformedReply(f"the server counts {name} as {str(value)[:80]}")
    return value
