"""Who shares cached prefixes with whom.

Requests with the same cache key do. Where the server knows one token or none, the key is the
client's own salt. Where it knows several, each token has a domain that only the server can derive,
and every key of a token's clients begins with it.
"""

from __future__ import annotations

_TAG = b"sgc cache domain 1"


def domain_of(token: str) -> bytes:
    """What sets a token's clients apart; tells nothing of the token."""
    import hashlib  # neither is needed where there is no token
    import hmac

    return hmac.digest(token.encode(), _TAG, hashlib.sha256)


def cache_key(domain: bytes, salt: bytes) -> bytes:
    """The key of a client's salt. No two pairs of domain and salt have the same key, where there
    are domains: the domain's length comes first."""
    if not domain:
        return salt
    return len(domain).to_bytes(2, "big") + domain + salt
