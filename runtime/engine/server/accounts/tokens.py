"""The tokens that let clients in: the cache domain of each, and the account of its clients.

`token_files.py` reads them. Only hashes of tokens are kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sgc.errors import UsageError
from sgc.runtime.engine.preparing.salts import domain_of
from sgc.runtime.engine.server.accounts.caller import Caller
from sgc.runtime.engine.server.accounts.quotas import NO_QUOTA, Account, Quota

MAX_TOKEN_CHARS = 4096
MAX_TOKENS = 1024
_SCHEME = b"Bearer "


@dataclass(frozen=True, slots=True)
class Entry:
    """A token. digest: SHA-256 of it; domain: of its cache."""

    digest: bytes
    domain: bytes
    account: Account


def entry_of(token: str | bytes, name: str, quota: Quota = NO_QUOTA) -> Entry:
    """token: itself, or its digest, which gives another domain."""
    if isinstance(token, bytes):
        return Entry(token, domain_of(f"\0sha256 {token.hex()}"), Account(name, quota))
    return Entry(_digest(token.encode()), domain_of(token), Account(name, quota))


class Tokens:
    """The server's tokens; falsy if there are none, when all clients are let in."""

    def __init__(self, tokens: Iterable[str | Entry] = ()) -> None:
        self._entries = tuple(
            entry_of(each, f"token-{i}") if isinstance(each, str) else each
            for i, each in enumerate(tokens, start=1)
        )
        self._has_domains = len(self._entries) > 1

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def accounts(self) -> list[Account]:
        return [entry.account for entry in self._entries]

    def replace(self, others: Tokens) -> None:
        """Replaces the accepted tokens. Each has a domain of its own: prefixes cached for a token
        that was alone are not shared with others. An account of the same name continues, with its
        new limits."""
        known = {entry.account.name: entry.account for entry in self._entries}
        entries = []
        for entry in others._entries:
            account = known.get(entry.account.name, entry.account)
            account.change(entry.account.quota)
            entries.append(Entry(entry.digest, entry.domain, account))
        self._entries, self._has_domains = tuple(entries), True

    def find(self, authorization: bytes) -> bytes | None:
        """The domain of the token in a header, b"" if it is the only one; None if it is wrong."""
        caller = self.caller_of(authorization)
        return None if caller is None else caller.domain

    def caller_of(self, authorization: bytes) -> Caller | None:
        """The `Caller` with the token in a header; None if the token is wrong.

        Takes the same time for every wrong token, and for every right one.
        """
        import hmac

        found = None
        digest = _digest(authorization.removeprefix(_SCHEME))
        for entry in self._entries:
            if hmac.compare_digest(digest, entry.digest):
                found = entry
        if found is None or not authorization.startswith(_SCHEME):
            return None
        return Caller(found.domain if self._has_domains else b"", found.account)

    def caller_given(self, metadata: Iterable[tuple[str, str | bytes]]) -> Caller | None:
        """The same, for a gRPC call's metadata."""
        for key, value in metadata:
            if key == "authorization":
                caller = self.caller_of(value.encode() if isinstance(value, str) else value)
                if caller is not None:
                    return caller
        return None


def _digest(token: bytes) -> bytes:
    import hashlib  # not needed without tokens

    return hashlib.sha256(token).digest()


def check_number(n: int, where: str) -> None:
    """Raises `UsageError` for more tokens than a server takes."""
    if n > MAX_TOKENS:
        raise UsageError(f"{where} has {n} tokens, of at most {MAX_TOKENS}")


def check_token(token: str, where: str) -> None:
    """Raises `UsageError` for a token that no client could send."""
    if len(token) > MAX_TOKEN_CHARS or not (token.isascii() and token.isprintable()):
        raise UsageError(
            f"a token must be up to {MAX_TOKEN_CHARS} printable ASCII characters; see {where}"
        )
