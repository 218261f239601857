"""Engines by their addresses: over HTTP, over gRPC, or both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sgc.errors import UsageError

MAX_ENGINES = 1024
MAX_FILE_BYTES = 1 << 20
_HTTP, _GRPC = ("http://", "https://"), ("grpc://", "grpcs://", "unix:")
_BETWEEN = re.compile(r",(?=https?://|grpcs?://|unix:)")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an engine listens; "" where it does not. name: the addresses as they were given."""

    name: str
    http: str
    grpc: str


def place_of(name: str) -> Place:
    """An engine's addresses, separated by a comma. Raises UsageError."""
    found = {"http": "", "grpc": ""}
    for address in _BETWEEN.split(name):
        kind = "http" if address.startswith(_HTTP) else "grpc"
        if not address.startswith(_HTTP + _GRPC) or found[kind]:
            raise UsageError(
                f"{name!r} is no address of an engine",
                hint="expected http://HOST:PORT (of `sgc serve --http PORT`, SGLang or vLLM), "
                "grpc://HOST:PORT (of `sgc serve --listen`), or both of one engine with a comma "
                "between them",
            )
        found[kind] = address.rstrip("/")
    return Place(name, found["http"], found["grpc"])


def places_of(names: Sequence[str]) -> dict[str, Place]:
    """Engines by their names, each of which listens in the same ways. Raises UsageError."""
    if not names:
        raise UsageError("no engine is named", hint="--engine ADDRESS, or --engines FILE")
    found = [place_of(name) for name in names]
    listed = [address for each in found for address in (each.http, each.grpc) if address]
    if len(found) > MAX_ENGINES or len({*listed}) < len(listed):
        raise UsageError(f"at most {MAX_ENGINES} engines, each once; found {len(found)}")
    for kind in ("http", "grpc"):
        _check_all_or_none(kind, found)
    return {each.name: each for each in found}


def _check_all_or_none(kind: str, places: Iterable[Place]) -> None:
    lacking = [each.name for each in places if not getattr(each, kind)]
    if lacking and any(getattr(each, kind) for each in places):
        raise UsageError(
            f"{lacking[0]} has no {kind}:// address, and others have one",
            hint="name both addresses of each engine: http://HOST:PORT,grpc://HOST:PORT",
        )


def read_engines(engines: Sequence[str], file: Path | None) -> list[str]:
    """The engines given, and those of a file, one a line. Raises UsageError."""
    found = list(engines)
    if file is not None:
        try:
            data = file.read_bytes()[:MAX_FILE_BYTES].decode()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--engines {file}: {error}") from error
        lines = map(str.strip, data.splitlines())
        found += [line for line in lines if line and not line.startswith("#")]
    found = [each.rstrip("/") for each in found]
    places_of(found)
    return found
