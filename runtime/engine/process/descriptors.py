"""How many connections a server takes, so that it never lacks a file descriptor.

If it did, no client could connect to any face, however few clients caused it.
"""

from __future__ import annotations

from functools import cache

MAX_CONNECTIONS = 512  # of one face
_FACES = 3  # gRPC, HTTP, metrics
_OTHERS = 128  # files, pipes, event loops


@cache
def max_connections() -> int:
    """The most connections of each face. Raises this process's limit on files for them, if it may:
    by default it is 1,024 on most systems."""
    limit = allow(_FACES * MAX_CONNECTIONS + _OTHERS)
    return min(MAX_CONNECTIONS, max(16, (limit - _OTHERS) // _FACES))


def allow(wanted: int) -> int:
    """Raises this process's limit on files to `wanted`, if the limit is lower and may be raised;
    returns the limit, or `wanted` if that is less."""
    import resource  # not on Windows, where there is no server

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit
