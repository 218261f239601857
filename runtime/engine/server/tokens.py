"""The tokens that let clients in, and the cache domain of each.

A token file holds one token per line; empty lines and lines that begin with `#` are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable

from sgc.errors import UsageError
from sgc.runtime.engine.preparing.salts import domain_of

MAX_TOKEN_CHARS = 4096
MAX_TOKENS = 1024
MAX_FILE_BYTES = 1024 * 1024


class Tokens:
    """The server's tokens; falsy if there are none, when all clients are let in."""

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        self._headers = tuple((f"Bearer {token}".encode(), domain_of(token)) for token in tokens)
        self._has_domains = len(self._headers) > 1

    def __len__(self) -> int:
        return len(self._headers)

    def replace(self, others: Tokens) -> None:
        """Lets other tokens in from now on, each with a domain of its own: what a token that was
        alone has cached is no other's."""
        self._headers, self._has_domains = others._headers, True

    def find(self, authorization: bytes) -> bytes | None:
        """The domain of the token in a header, b"" if there is only one token; None if it is wrong.

        Takes the same time for every wrong token, and for every right one.
        """
        import hmac

        found = None
        for expected, domain in self._headers:
            if hmac.compare_digest(authorization, expected):
                found = domain if self._has_domains else b""
        return found

    def domain_given(self, metadata: Iterable[tuple[str, str | bytes]]) -> bytes:
        """The domain of a gRPC call that was let in."""
        return self.find_given(metadata) or b""

    def find_given(self, metadata: Iterable[tuple[str, str | bytes]]) -> bytes | None:
        """The same as `find`, for a gRPC call's metadata."""
        for key, value in metadata:
            if key == "authorization":
                domain = self.find(value.encode() if isinstance(value, str) else value)
                if domain is not None:
                    return domain
        return None


def read_tokens(data: bytes, where: str) -> Tokens:
    """The tokens in a token file; raises `UsageError`, which never shows a token."""
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"the token file {where} has more than {MAX_FILE_BYTES} bytes")
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
    if len(found) > MAX_TOKENS:
        raise UsageError(f"{where} has {len(found)} tokens, of at most {MAX_TOKENS}")
    return Tokens(found)


def check_token(token: str, where: str) -> None:
    """Raises `UsageError` for a token that no client could send."""
    if len(token) > MAX_TOKEN_CHARS or not (token.isascii() and token.isprintable()):
        raise UsageError(
            f"a token must be up to {MAX_TOKEN_CHARS} printable ASCII characters; see {where}"
        )
