"""Token files: one token a line, where empty lines and lines that begin with `#` do not count. Or,
if the name ends in `.toml`, tokens with names, limits and priorities:

    [[token]]
    name = "batch"
    token = "…"                    # or sha256 = "…", of the token, in hexadecimal
    requests_per_minute = 600
    tokens_per_minute = 200_000
    max_concurrent = 32
    priority = "low"
    max_priority = "normal"        # of requests that ask for one; without it, `priority`

An error names the line, or the entry and the key, and never shows a token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sgc.errors import UsageError
from sgc.runtime.engine.server.accounts.quotas import PRIORITIES, Quota
from sgc.runtime.engine.server.accounts.tokens import (
    Entry,
    Tokens,
    check_number,
    check_token,
    entry_of,
)

MAX_FILE_BYTES = 1024 * 1024
MAX_LIMIT = 10**12
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HEX = re.compile(r"[0-9a-fA-F]{64}")
_LIMITS = ("requests_per_minute", "tokens_per_minute", "max_concurrent")
_KEYS = ("name", "token", "sha256", *_LIMITS, "priority", "max_priority")


def read_tokens(data: bytes, where: str) -> Tokens:
    """The tokens in a token file; raises `UsageError`, which never shows a token."""
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"the token file {where} has more than {MAX_FILE_BYTES} bytes")
    if where.endswith(".toml"):
        return parse_tokens(data, where)
    lines = data.decode(errors="replace").splitlines()
    found: dict[str, int] = {}
    for number, line in enumerate(map(str.strip, lines), start=1):
        if line and not line.startswith("#"):
            check_token(line, f"line {number} of {where}")
            if line in found:
                raise UsageError(f"lines {found[line]} and {number} of {where} are one token")
            found[line] = number
    if not found:
        raise UsageError(f"the token file {where} is empty")
    check_number(len(found), where)
    return Tokens(found)


def parse_tokens(data: bytes, where: str) -> Tokens:
    """The tokens of a TOML file; raises `UsageError`."""
    import tomllib

    try:
        found = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is not UTF-8") from error
    except tomllib.TOMLDecodeError as error:  # its message may hold a piece of the file
        at = re.search(r"\(at [^)]*\)$", str(error))
        raise UsageError(f"{where} is not TOML {at.group() if at else ''}".strip()) from None
    except RecursionError as error:
        raise UsageError(f"{where} is nested too deep") from error
    rows = found.pop("token", [])
    if found:
        raise UsageError(f"{where}: {sorted(found)[0][:80]!r} is unknown; expected [[token]]")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{where} has no [[token]]")
    check_number(len(rows), where)
    entries = [_entry(row, f"token {i} of {where}") for i, row in enumerate(rows, start=1)]
    for value, what in ((_digest, "tokens"), (_name, "names")):
        seen: dict[Any, int] = {}
        for i, entry in enumerate(entries, start=1):
            first = seen.setdefault(value(entry), i)
            if first != i:
                raise UsageError(f"tokens {first} and {i} of {where} have equal {what}")
    return Tokens(entries)


def _digest(entry: Entry) -> bytes:
    return entry.digest


def _name(entry: Entry) -> str:
    return entry.account.name


def _entry(row: Mapping[str, Any], where: str) -> Entry:
    for key in row:
        if key not in _KEYS:
            raise UsageError(
                f"{where}: unknown key {key[:80]!r}", hint=f"there are {', '.join(_KEYS)}"
            )
    name = row.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{where}: name must be 1 to 64 letters, digits and '.', '_', '-'")
    requests, tokens, at_once = (_limit(row, key, where) for key in _LIMITS)
    priority = _priority(row, "priority", where, 0)
    highest = _priority(row, "max_priority", where, priority)
    if highest < priority:
        raise UsageError(f"{where}: max_priority is below priority")
    quota = Quota(requests, tokens, at_once, priority, highest)
    token, digest = row.get("token"), row.get("sha256")
    if (token is None) == (digest is None):
        raise UsageError(f"{where}: expected token or sha256, and not both")
    if token is not None:
        if not isinstance(token, str) or not token:
            raise UsageError(f"{where}: token must be a text")
        check_token(token, where)
        return entry_of(token, name, quota)
    if not isinstance(digest, str) or not _HEX.fullmatch(digest):
        raise UsageError(f"{where}: sha256 must be 64 hexadecimal digits")
    return entry_of(bytes.fromhex(digest), name, quota)


def _limit(row: Mapping[str, Any], key: str, where: str) -> Any:
    value = row.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_LIMIT:
        raise UsageError(f"{where}: {key} must be a whole number from 1 to {MAX_LIMIT}")
    return value


def _priority(row: Mapping[str, Any], key: str, where: str, default: int) -> int:
    name = row.get(key)
    if name is None:
        return default
    if not isinstance(name, str) or name not in PRIORITIES:
        raise UsageError(f"{where}: {key} must be one of {', '.join(PRIORITIES)}")
    return PRIORITIES[name]
