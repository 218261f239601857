"""Cache keys: which requests share cached prefixes.

Requests with the same cache key share. If the server has one token or none, the key is the client's
salt. If it has several, each token has a domain that only the server can derive, and the keys of
the token's clients begin with it. Each adapter has keys of its own, by the content of its files, so
that its K and V are never shared.
"""

from __future__ import annotations

_TAG = b"sgc cache domain 1"
_ADAPTED = b"adapter "


def domain_of(token: str) -> bytes:
    """A token's domain; it reveals nothing about the token."""
    import hashlib  # not needed without tokens
    import hmac

    return hmac.digest(token.encode(), _TAG, hashlib.sha256)


def cache_key(domain: bytes, salt: bytes, adapter: bytes = b"") -> bytes:
    """The cache key of a domain, a salt, and the digest of an adapter. With domains, different
    pairs have different keys, as the domain's length comes first. An adapter's key is longer than
    any salt, and cannot begin like a domain's length, so that no client's salt equals it."""
    if adapter:
        import hashlib

        parts = b"".join(len(part).to_bytes(2, "big") + part for part in (domain, salt, adapter))
        return _ADAPTED + hashlib.sha512(parts).digest()
    if not domain:
        return salt
    return len(domain).to_bytes(2, "big") + domain + salt
