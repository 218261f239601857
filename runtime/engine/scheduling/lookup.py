"""Prompt look-up: decoding requests guess their next tokens, and the step that runs their last
token runs the guesses too. The draws then say which guesses were right (`drawing.py`), so a text is
the same as without them.

A guess is copied: from a cached path of the radix tree that begins with the whole text so far, else
from the text itself (`guesses.py`). Only small steps have guesses: they read the model's weights
for a few positions, and some more positions take hardly longer.

Requests with a constraint, penalties or log-probabilities do not guess: each of their draws needs
work that depends on the one before.
"""

from __future__ import annotations

from itertools import takewhile

from sgc.runtime.engine.cache.cache import PrefixCache
from sgc.runtime.engine.requests.guesses import MOST, Guesses
from sgc.runtime.engine.requests.request import Generate, Work
from sgc.runtime.engine.scheduling.items import Item

MOST_POSITIONS = 16  # of a step with guesses


class Lookup:
    """chunk_tokens: positions a step may run. longest: tokens a sequence may have."""

    def __init__(self, cache: PrefixCache, chunk_tokens: int, longest: int) -> None:
        self._cache = cache
        self.most_positions = min(MOST_POSITIONS, chunk_tokens)
        self._longest = longest

    def guess(self, items: list[Item]) -> list[Item]:
        """The items, with guesses where they pay."""
        if len(items) >= self.most_positions:
            return items
        left = self.most_positions - sum([item.n_positions for item in items])
        if left <= 0:
            return items
        guessed: list[Item] = []
        for i, item in enumerate(items):
            share = -(-left // (len(items) - i))  # positions that others leave go to the next
            ids = self._guesses(item.work, min(MOST, share)) if item.is_decode else ()
            left -= len(ids)
            guessed.append(Item(item.work, 1, (), True, ids) if ids else item)
        return guessed

    def _guesses(self, work: Work, n: int) -> tuple[int, ...]:
        """At most `n` guesses, one less than the text may still grow by: another token is drawn."""
        kind, decoding = work.request.kind, work.decoding
        n = min(n, work.n_left - 1, self._longest - len(work.tokens) - 1)
        if n <= 0 or not decoding.may_guess:
            return ()
        guesses = decoding.guesses
        if guesses is None:
            guesses = decoding.guesses = Guesses(len(work.tokens))
        n = min(n, guesses.allowed(len(work.tokens)))
        if n <= 0:
            return ()
        ids = self._proposed(work, guesses, n)
        if not ids:
            return ()
        assert isinstance(kind, Generate)
        return tuple(takewhile(lambda token: token >= 0 and token not in kind.stop_ids, ids))

    def _proposed(self, work: Work, guesses: Guesses, n: int) -> list[int]:
        return self._cached(work, guesses, n) or guesses.copied(work.tokens, n)

    def _cached(self, work: Work, guesses: Guesses, n: int) -> list[int]:
        """The tokens that follow the text in the tree. A text that has left the tree's paths is not
        searched for again from the same place."""
        if guesses.left_tree is work.node:
            return []
        assert work.node is not None
        new = work.tokens.view[work.n_published :]
        ids: list[int] = self._cache.tree.following(new, work.node, n).tolist()
        if not ids:
            guesses.left_tree = work.node
        return ids
