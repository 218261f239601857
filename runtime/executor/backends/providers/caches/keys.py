"""`prompt_cache_key`s: which requests a provider should send to the same machine.

A provider that keeps prompts by itself sends requests that begin alike, with one key, to a machine
that has seen the beginning, but only so many a minute; what is beyond goes to one that has not. So
a key is used so often a minute and no more, and a request gets the key of the longest prefix that
has one: a conversation stays where it is. The first key of a program is the same in every run.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence

from sgc.runtime.executor.backends.providers.models.models import Caching
from sgc.runtime.executor.backends.providers.wire.limits import MINUTE_S, Clock
from sgc.runtime.executor.backends.providers.wire.messages import Prefix

MAX_KNOWN = 4096  # prefixes and keys that are remembered, each


class CacheKeys:
    """Of one endpoint."""

    def __init__(self, caching: Caching | None, clock: Clock) -> None:
        self._per_minute = 0 if caching is None else caching.key_rpm
        self._clock = clock
        self._key_of: OrderedDict[str, str] = OrderedDict()  # by a prefix
        self._times: OrderedDict[str, deque[float]] = OrderedDict()  # of a key's last minute

    def key_for(self, prefixes: Sequence[Prefix]) -> str:
        """The key of a request with these marked prefixes, from the shortest; "" for none."""
        if not prefixes or not self._per_minute:
            return ""
        given = (self._key_of.get(prefix.digest) for prefix in reversed(prefixes))
        key = next((key for key in given if key is not None and self._has_room(key)), None)
        if key is None:
            key = self._with_room(prefixes[0].digest[:16])
        for prefix in prefixes:
            self._key_of.setdefault(prefix.digest, key)
            self._key_of.move_to_end(prefix.digest)
        self._times[key].append(self._clock.now())
        self._forget()
        return key

    def _with_room(self, base: str) -> str:
        number = 0
        while not self._has_room(f"sgc-{base}-{number}"):
            number += 1
        return f"sgc-{base}-{number}"

    def _has_room(self, key: str) -> bool:
        times = self._times.setdefault(key, deque())
        self._times.move_to_end(key)
        while times and times[0] <= self._clock.now() - MINUTE_S:
            times.popleft()
        return len(times) < self._per_minute

    def _forget(self) -> None:
        for known in (self._key_of, self._times):
            while len(known) > MAX_KNOWN:
                known.popitem(last=False)
