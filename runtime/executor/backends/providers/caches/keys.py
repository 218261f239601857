"""Chooses `prompt_cache_key`s, by which a provider routes requests to the same machine.

A provider with automatic caching routes requests with the same prefix and key to a machine that has
cached the prefix, but only a limited number per minute; more go to other machines. So each key has
a limit per minute, and a request gets the key of its longest prefix that has one: a conversation
stays on its machine. The first key of a program is the same in every run.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence

from sgc.runtime.executor.backends.providers.models.models import Caching
from sgc.runtime.executor.backends.providers.wire.limits import MINUTE_S, Clock
from sgc.runtime.executor.backends.providers.wire.messages import Prefix

MAX_KNOWN = 4096  # known prefixes, and known keys


class CacheKeys:
    """The keys of one endpoint."""

    def __init__(self, caching: Caching | None, clock: Clock) -> None:
        self._per_minute = 0 if caching is None else caching.key_rpm
        self._clock = clock
        self._key_of: OrderedDict[str, str] = OrderedDict()  # by a prefix
        self._times: OrderedDict[str, deque[float]] = OrderedDict()  # in the last minute

    def key_for(self, prefixes: Sequence[Prefix]) -> str:
        """The key for a request with these marked prefixes, shortest first; "" for none."""
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
