"""Estimates how much of a prompt a provider has cached, by its rules in the table of models.

It is a guess: entries are lost, and requests go to machines without them. Prompts are counted one
by one, as if each were cached before the next request.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass, replace

from sgc.runtime.executor.backends.providers.models.models import Caching, Facts
from sgc.runtime.executor.backends.providers.wire.lower import Lowered
from sgc.runtime.executor.backends.providers.wire.messages import (
    Conversation,
    Mark,
    Message,
    Prefix,
    marked_prefixes,
    marks_of,
)

MAX_KEPT = 50_000  # prompts or prefixes; beyond it all are forgotten


@dataclass(frozen=True, slots=True)
class Kept:
    """Tokens of a prompt that were cached, and that are written to the cache, by lifetime."""

    cached: int = 0
    written_5m: int = 0
    written_1h: int = 0


class ExpectedCache:
    """A provider's prompt cache."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._prompts: list[str] = []  # sorted: neighbours share the longest prefixes
        self._prefixes: dict[str, int] = {}

    def ask(self, lowered: Lowered, prompt_tokens: int, n_bytes: int) -> Kept:
        """What a request is expected to read from the cache and to write to it.

        prompt_tokens, n_bytes: of its whole prompt; its parts are assumed to have the same tokens
        per byte.
        """
        caching, asked = self._facts.caching, lowered.asked
        if caching is None or not isinstance(asked, Conversation) or self._facts.cache == "off":
            return Kept()
        also = "" if lowered.shape is None else json.dumps(lowered.shape.schema, sort_keys=True)
        rate = prompt_tokens / max(n_bytes, 1)
        if caching.kind == "automatic":
            return self._automatic(caching, also + _text(asked), rate, prompt_tokens)
        if asked.is_planned and self._facts.cache == "plan":
            prefixes = marked_prefixes(asked.messages, also)[-max(caching.breakpoints, 1) :]
            return self._marked(caching, prefixes, rate, prompt_tokens, asked)
        if caching.kind == "both":  # the provider itself marks the prompt's end
            ended = tuple(_with_mark(message) for message in asked.messages)
            prefixes = marked_prefixes(ended, also)
            return self._marked(caching, prefixes, rate, prompt_tokens, asked)
        return Kept()

    def _automatic(self, caching: Caching, text: str, rate: float, prompt_tokens: int) -> Kept:
        at = bisect_left(self._prompts, text)
        beside = self._prompts[max(at - 1, 0) : at + 1]
        n_bytes = max((_n_common_bytes(text, each) for each in beside), default=0)
        if len(self._prompts) >= MAX_KEPT:
            self._prompts.clear()
            at = 0
        self._prompts.insert(at, text)
        n_tokens = min(int(n_bytes * rate), prompt_tokens)
        if n_tokens < max(caching.min_tokens, 1):
            return Kept()
        return Kept(cached=n_tokens - n_tokens % max(caching.step, 1))

    def _marked(
        self,
        caching: Caching,
        prefixes: tuple[Prefix, ...],
        rate: float,
        prompt_tokens: int,
        asked: Conversation,
    ) -> Kept:
        sizes = {each.digest: min(int(each.n_bytes * rate), prompt_tokens) for each in prefixes}
        long = {key: n for key, n in sizes.items() if n >= caching.min_tokens}
        cached = max((n for key, n in long.items() if key in self._prefixes), default=0)
        written = max(long.values(), default=0) - cached
        if len(self._prefixes) >= MAX_KEPT:
            self._prefixes.clear()
        self._prefixes.update(long)
        if self._is_long_lived(caching, asked):
            return Kept(cached, written_1h=written)
        return Kept(cached, written_5m=written)

    def _is_long_lived(self, caching: Caching, asked: Conversation) -> bool:
        marks = [mark.ttl for _, mark in marks_of(asked.messages) if mark.ttl]
        ttl = marks[-1] if marks else self._facts.cache_ttl or next(iter(caching.ttl), "")
        return ttl == "1h"


def _with_mark(message: Message) -> Message:
    parts = tuple(part for part in message.parts if not isinstance(part, Mark))
    return replace(message, parts=(*parts, Mark()))


def _text(asked: Conversation) -> str:
    parts = [f"\0{each.role}\0{each.text}" + "".join(m.digest for m in each.media)
             for each in asked.messages]  # fmt: skip
    return "".join(parts) + asked.prefill


def _n_common_bytes(one: str, other: str) -> int:
    """The bytes of the common prefix of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # binary search for the longest common prefix
        middle = (low + high + 1) // 2
        if one.startswith(other[:middle]):
            low = middle
        else:
            high = middle - 1
    return len(one[:low].encode("utf-8", "surrogatepass"))
