"""Cache keys: which requests share cached prefixes.

Requests with the same cache key share. If the server has one token or none, the key is the client's
salt. If it has several, each token has a domain that only the server can derive, and the keys of
the token's clients begin with it.
"""

from __future__ import annotations

_TAG = b"sgc cache domain 1"


def domain_of(token: str) -> bytes:
    """A token's domain; it reveals nothing about the token."""
    import hashlib  # not needed without tokens
    import hmac

    return hmac.digest(token.encode(), _TAG, hashlib.sha256)


def cache_key(domain: bytes, salt: bytes) -> bytes:
    """The cache key of a domain and a salt. With domains, different pairs have different keys, as
    the domain's length comes first."""
    if not domain:
        return salt
    return len(domain).to_bytes(2, "big") + domain + salt
